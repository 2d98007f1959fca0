import { html } from "lit";
import { LightElement } from "./light.js";

/** Switches between the light and the dark theme. The system's theme applies until the reader chooses one. */
export class AkinTheme extends LightElement {
  override render() {
    const dark = this.isDark();
    return html`<button
      type="button"
      class="theme"
      aria-pressed=${dark}
      @click=${this.toggle}
      title=${dark ? "Light theme" : "Dark theme"}
    >
      <svg viewBox="0 0 24 24" aria-hidden="true">
        <circle cx="12" cy="12" r="8.25" />
        <path d="M12 3.75a8.25 8.25 0 0 1 0 16.5z" />
      </svg>
      <span class="visually-hidden">Dark theme</span>
    </button>`;
  }

  override connectedCallback(): void {
    this.replaceChildren();
    super.connectedCallback();
  }

  private isDark(): boolean {
    const chosen = document.documentElement.dataset["theme"];
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  private toggle(): void {
    const theme = this.isDark() ? "light" : "dark";
    document.documentElement.dataset["theme"] = theme;
    try {
      localStorage.setItem("akin-theme", theme);
    } catch {
      // Storage may be forbidden; the choice then lasts until the reader leaves the page.
    }
    this.requestUpdate();
  }
}
customElements.define("akin-theme", AkinTheme);
