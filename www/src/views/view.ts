import type { AddressState, COMMON, Table } from "../address.js";

/** What a view gets: the element that it fills, and its state in the address. */
export interface Place<T extends Table> {
  /** A section of the page that only this view uses. It is hidden while another view is shown. */
  readonly root: HTMLElement;
  readonly address: AddressState<T & typeof COMMON>;
}

/** A view of the page. Its module exports it as `view`. */
export interface View<T extends Table = Table> {
  /** The parameters of its address, beside those of every view. */
  readonly parameters: T;
  /** Those that mean nothing in another bundle. */
  readonly ofBundle?: readonly (keyof T & string)[];
  /** Fills the root. It is called once, when the view is first opened. The root must then contain an <h1>. */
  open(place: Place<T>): void;
}

/** Forgets the types of the parameters: the registry holds views of all kinds, and the frame gives each its own state. */
export const defineView = <T extends Table>(view: View<T>): View => view as unknown as View;
