// Sets the chosen theme before the first paint, so that the other theme does not flash. The element
// <akin-theme> changes it later.
try {
  const chosen = localStorage.getItem("akin-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;
} catch {
  // Storage may be forbidden; the system's theme then applies.
}
