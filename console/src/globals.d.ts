/** The version of the package that this page was built for. */
declare const __VERSION__: string
