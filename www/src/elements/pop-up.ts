/** Closes an open `<details>` whose content floats over the page, on Escape or when it loses the focus. */
export function closePopUp(event: KeyboardEvent | FocusEvent): void {
  const details = event.currentTarget as HTMLDetailsElement;
  if (event instanceof KeyboardEvent) {
    if (event.key !== "Escape" || !details.open) return;
    details.querySelector("summary")?.focus();
    details.open = false;
  } else if (event.relatedTarget instanceof Node && !details.contains(event.relatedTarget)) {
    details.open = false;
  }
}
