/** The version of this package, as its peers are told it. */
export const version = '0.1.0'
