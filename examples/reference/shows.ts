/** What a tool shows to whoever judges the server, said in its `_meta`. */

/** @example server.tool('note', { meta: shows('event:noted') }, …) */
export function shows(...brings: readonly string[]): Readonly<Record<string, unknown>> {
  return { 'dev.vivarium/conformance': { brings } }
}

/** The same of an event that only those with these scopes hear. */
export function showsTo(scopes: readonly string[], ...brings: readonly string[]): Readonly<Record<string, unknown>> {
  return { 'dev.vivarium/conformance': { brings, scopes } }
}
