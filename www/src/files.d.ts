/** The text of a stylesheet, bundled and minified (scripts/build.mjs). */
declare module "*.css" {
  const text: string;
  export default text;
}

/** The address of a font, relative to the script that imports it. */
declare module "*.woff2" {
  const address: string;
  export default address;
}

/** A module of wasm-bindgen in the built page, as its text (scripts/notebook.mjs). */
declare module "page:*.js" {
  const text: string;
  export default text;
}

/** The code of a module in the built page, compressed. */
declare module "page:*.wasm" {
  const bytes: Uint8Array;
  export default bytes;
}

/** A script of its own, bundled, as its text. */
declare module "script:*" {
  const text: string;
  export default text;
}
