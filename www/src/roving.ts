/**
 * Moves the focus inside a group of buttons that is one stop of the Tab key: arrow keys, Home and End.
 * Up and down move by the rows that the buttons form on the screen. A second button beside one of them, marked with
 * `data-rove-beside`, comes after it in the Tab order.
 */
export function moveFocus(event: KeyboardEvent): void {
  const group = event.currentTarget as HTMLElement;
  const buttons = [...group.querySelectorAll<HTMLElement>("[data-rove]")];
  const at = buttons.findIndex(hasFocus);
  if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
  const next = targetIndex(event.key, buttons, at);
  if (next === undefined) return;
  event.preventDefault();
  const button = buttons[Math.max(0, Math.min(buttons.length - 1, next))];
  setTabStop(group, button);
  button?.focus();
}

/** Puts exactly one button of the group into the Tab order: `chosen`, else the focused one, else the first. */
export function setTabStop(group: Element | null, chosen?: Element | null): void {
  const buttons = [...(group?.querySelectorAll<HTMLElement>("[data-rove]") ?? [])];
  const stop = chosen ?? buttons.find(hasFocus) ?? buttons[0];
  for (const button of buttons) {
    const other = beside(button);
    button.tabIndex = button === stop ? 0 : -1;
    if (other) other.tabIndex = button.tabIndex;
  }
}

const beside = (button: HTMLElement) => button.parentElement?.querySelector<HTMLElement>(":scope > [data-rove-beside]");

/** Whether the button or the one beside it has the focus. */
function hasFocus(button: HTMLElement): boolean {
  const { activeElement } = document;
  return activeElement !== null && (button === activeElement || beside(button) === activeElement);
}

function targetIndex(key: string, buttons: HTMLElement[], at: number): number | undefined {
  switch (key) {
    case "ArrowRight":
      return at + 1;
    case "ArrowLeft":
      return at - 1;
    case "Home":
      return 0;
    case "End":
      return buttons.length - 1;
    case "ArrowDown":
      return at + buttonsPerRow(buttons);
    case "ArrowUp":
      return at - buttonsPerRow(buttons);
    default:
      return undefined;
  }
}

function buttonsPerRow(buttons: HTMLElement[]): number {
  const top = buttons[0]?.getBoundingClientRect().top;
  const second = buttons.findIndex((button) => button.getBoundingClientRect().top !== top);
  return second < 0 ? buttons.length : second;
}
