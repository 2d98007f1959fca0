/** The text of a stylesheet, bundled and minified (scripts/build.mjs). */
declare module "*.css" {
  const text: string;
  export default text;
}

/** The address of a font, relative to the script that imports it. */
declare module "*.woff2" {
  const address: string;
  export default address;
}
