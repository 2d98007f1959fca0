// Runs before the first paint. It sets the chosen theme, so that the other one does not flash, and names
// the view and the hidden parts, so that nothing is shown that is hidden a moment later. <akin-theme> and
// frame.ts change them. Where browsers run no modules, it says so.
{
  const { dataset } = document.documentElement;
  try {
    const chosen = localStorage.getItem("akin-theme");
    if (chosen === "light" || chosen === "dark") dataset["theme"] = chosen;
  } catch {
    // Storage may be forbidden; the system's theme then applies.
  }
  const params = new URLSearchParams(location.search);
  dataset["view"] = params.get("view") ?? "search";
  dataset["hide"] = (params.get("hide") ?? "").replaceAll(",", " ");

  /** Says why a page without an origin is dead: its modules are of another one to the browser. */
  const explain = () => {
    const notice = document.createElement("p");
    notice.className = "notice";
    notice.setAttribute("role", "alert");
    notice.textContent =
      location.protocol === "file:"
        ? "This page cannot run from a file. Open it with “akin serve”, or put its folder on a web server."
        : "This page cannot run here, because it is shown in a sandbox, as Jupyter shows files. Open it with “akin serve”, or use akin.map and akin.playground in a notebook.";
    document.querySelector("main")?.prepend(notice);
  };
  if (window.origin === "null") document.addEventListener("DOMContentLoaded", explain);
}
