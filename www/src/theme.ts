// Runs before the first paint. It sets the chosen theme, so that the other one does not flash, and names
// the view and the hidden parts, so that nothing is shown that is hidden a moment later. <akin-theme> and
// frame.ts change them.
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
}
