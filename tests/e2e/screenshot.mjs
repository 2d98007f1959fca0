// Takes the screenshot of the README. Usage: node screenshot.mjs FILE.png [ADDRESS], where ADDRESS is the
// query part of the page's address, such as "?encoder=HAPPIER&q=5".
//
// Environment as in site.mjs; AKIN_FIXTURE is the folder of `akin demo`.
import { launch, serve, waitForResults } from "./site.mjs";

const [file, address = ""] = process.argv.slice(2);
if (!file) throw new Error("usage: node screenshot.mjs FILE.png [ADDRESS]");
const site = await serve();
const browser = await launch("cpu");
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: "light" });
  await page.goto(site.address + address);
  await waitForResults(page);
  await page.locator(".answer").evaluate((answer) => answer.scrollIntoView({ block: "start" }));
  // Thumbnails are drawn when their sheet has loaded.
  await page.waitForLoadState("networkidle");
  await page.screenshot({ path: file, animations: "disabled" });
} finally {
  await browser.close();
  site.stop();
}
