// Takes a picture of the README. Usage, with the address, the part of the page that it begins with, and what is clicked:
//
//   node tests/e2e/screenshot.mjs www/docs/search.jpg "?encoder=NormSoftmax&compare=HAPPIER&q=1962" .answer
//   node tests/e2e/screenshot.mjs www/docs/map.jpg "?view=map&encoder=HAPPIER&map=UMAP&q=1962" akin-map
//   node tests/e2e/screenshot.mjs www/docs/steps.jpg "?view=steps" "akin-steps .presets"
//   node tests/e2e/screenshot.mjs www/docs/playground.jpg "?view=playground" akin-playground \
//     "[data-preset=fig8-second]" "button[aria-labelledby*=up] >> nth=3"
//
// Environment as in site.mjs; AKIN_FIXTURE/bundle is www/galleries/groceries.
import { launch, serve, waitForResults } from "./site.mjs";

const [file, query = "", top = ".answer", ...clicks] = process.argv.slice(2);
if (!file)
  throw new Error("usage: node screenshot.mjs FILE [QUERY [PART [CLICK…]]]");
const site = await serve();
const browser = await launch("cpu");
try {
  const page = await browser.newPage({
    viewport: { width: 1280, height: 800 },
    colorScheme: "light",
  });
  await page.goto(site.address + query);
  if (top === ".answer") await waitForResults(page);
  for (const selector of clicks) await page.locator(selector).click();
  await page
    .locator(top)
    .first()
    .evaluate((part) =>
      part.scrollIntoView({ block: "start", behavior: "instant" }),
    );
  // Thumbnails are drawn when their sheet has loaded.
  await page.waitForLoadState("networkidle");
  await page.screenshot({ path: file, quality: 64, animations: "disabled" });
} finally {
  await browser.close();
  site.stop();
}
