/** The text of a stylesheet, bundled and minified (scripts/build.mjs). */
declare module "*.css" {
  const text: string;
  export default text;
}
