/** The floor plan of src/ (ARCHITECTURE.md): which room lies where, and what may come in from outside. */

/** Floors from the ground up. A room sees only lower floors; rooms on one floor do not see each other. */
const FLOORS: readonly (readonly string[])[] = [
  ['jsonrpc', 'stores'],
  ['core', 'revisions'],
  ['engine', 'transports', 'auth'],
  ['features'],
  ['server', 'client', 'policy', 'recording'],
  ['host', 'testing'],
  ['gateway', 'conformance'],
  ['console'],
  ['cli'],
]

export const floorOf: ReadonlyMap<string, number> = new Map(
  FLOORS.flatMap((rooms, floor) => rooms.map(room => [room, floor] as const)),
)

/** Families of features; each sees itself and those before it. */
export const FAMILIES: readonly string[] = ['mcp', 'reliability', 'live']

/** So many files of server, client and engine may import a feature of a family: the list, the API types and the entry of each role, and few more. */
export const MOST_IMPORTERS: Readonly<Record<string, number>> = { mcp: 8, reliability: 6, live: 6 }

/** So many files of src/ may be shorter than 25 lines, beside those that are short by their nature. */
export const MOST_SHORT = 10

/** Rooms that run on any web-standard runtime: nothing from `node:`. */
export const PORTABLE: ReadonlySet<string> = new Set(['jsonrpc', 'core', 'revisions', 'engine', 'features'])

/** The npm packages that code may name, each in one single file. Only those marked portable may be named in a portable room. */
export const PACKAGES: ReadonlyMap<string, { portable: boolean }> = new Map([
  ['ajv', { portable: true }],
  ['@cfworker/json-schema', { portable: true }],
  ['jose', { portable: true }],
  ['oauth4webapi', { portable: true }],
  ['ipaddr.js', { portable: false }],
  ['rfc6902', { portable: true }],
  ['pg', { portable: false }],
  ['ws', { portable: false }],
  ['express', { portable: false }],
  ['fastify', { portable: false }],
  ['hono', { portable: false }],
  ['jsonc-parser', { portable: false }],
  ['yaml', { portable: false }],
  ['commander', { portable: false }],
  ['fflate', { portable: false }],
  ['@opentelemetry/api', { portable: false }],
  ['ai', { portable: false }],
  ['@ai-sdk/anthropic', { portable: false }],
  ['@ai-sdk/openai', { portable: false }],
])

/** The files that load what only the user can name; nowhere else may the name of a module be computed. */
export const LOADERS: ReadonlySet<string> = new Set(['src/cli/serving/code.ts'])

/** Names under which things are put away instead of placed. */
export const DRAWERS = /^(utils?|helpers?|types|misc|common-utils|shared)$/

/**
 * The files outside src/revisions/ and messages.ts that may spell the id of a revision: an example in the
 * docs of an option. Everything else asks a revision for the fact that it wants to know.
 */
export const SPELLS_REVISIONS: ReadonlySet<string> = new Set(['src/testing/connect.ts'])
