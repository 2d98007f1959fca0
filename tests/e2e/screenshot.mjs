// Takes the screenshot of the README, www/docs/page.jpg. Usage:
//
//   node tests/e2e/screenshot.mjs www/docs/page.jpg "?encoder=HAPPIER&q=624"
//
// Environment as in site.mjs; AKIN_FIXTURE is the folder of `akin demo`.
import { launch, serve, waitForResults } from "./site.mjs";

const [file, query = ""] = process.argv.slice(2);
if (!file) throw new Error("usage: node screenshot.mjs FILE [QUERY]");
const site = await serve();
const browser = await launch("cpu");
try {
  const page = await browser.newPage({
    viewport: { width: 1280, height: 800 },
    colorScheme: "light",
  });
  await page.goto(site.address + query);
  await waitForResults(page);
  await page
    .locator(".answer")
    .evaluate((answer) =>
      answer.scrollIntoView({ block: "start", behavior: "instant" }),
    );
  // Thumbnails are drawn when their sheet has loaded.
  await page.waitForLoadState("networkidle");
  await page.screenshot({ path: file, quality: 85, animations: "disabled" });
} finally {
  await browser.close();
  site.stop();
}
