/**
 * The statements of the extensions and of MCP Live that speak of servers: whether a server shows to the outside that it keeps them, and why
 * not where it does not. Those of clients and hosts are with their scenarios.
 */

/** `seen`: a scenario shows it. Anything else is the reason why none can. */
export type Visibility = 'seen' | { readonly hidden: string }

const seen: readonly string[] = [
  ...of('E1', 1, 2, 3, 4, 5, 7, 8),
  ...of('E2', 1, 2, 3, 5, 6),
  ...of('E3', 1, 2, 3, 4, 5, 7, 8),
  ...of('E4', 1, 2, 3, 4, 5, 7, 9, 10),
  ...of('E5', 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18),
  ...of('E6', 2, 3, 4, 5, 6, 7, 9, 10),
  ...of('E7', 1, 2, 3, 4, 7),
  ...of('E8', 1, 2, 3, 4, 5, 6, 7, 8, 10),
  ...of('E9', 1, 2, 3, 4, 5, 6, 7, 8),
  ...of('E10', 1, 3, 4, 5, 6),
  ...of('E11', 1, 2, 7, 8, 9, 10),
  ...of('E13', 1, 5),
  ...of('E14', 2, 3, 4, 5, 6, 8),
  ...of('E15', 1, 2, 3, 5, 6, 7, 8, 9, 12),
  ...['X1', 'X2', 'X3', 'X4', 'X5', 'X8'],
  ...['L3.1-1', 'L3.2-1', 'L4-1', 'L4.1-1', 'L4.1-2', 'L4.1-3', 'L5.1-1', 'L6.2-1', 'L6.2-2', 'L6.4-1', 'L6.5-1', 'L6.5-2'],
  ...['L6.7-1', 'L6.7-2', 'L6.7-3', 'L6.7-4', 'L7.1-1', 'L7.3-1', 'L7.4-1', 'L7.7-1', 'L7.7-2', 'L8.1-1', 'L8.2-1', 'L8.3-1'],
  ...['L8.4-3', 'L8.6-1', 'L8.8-1', 'L9.2-1', 'L9.4-2', 'L10.2-1', 'L10.3-1', 'L10.4-1', 'L10.5-2', 'L10.7-1', 'L11.2-1'],
  ...['LA-1', 'LB-1'],
]

const hidden: Readonly<Record<string, string>> = {
  'E2-7': 'Logs of a server, and what it passes to others, are not visible in its messages',
  'E4-6': 'Only the operator of the server can revoke; no message does it',
  'E4-8': 'A failing decision inside the server cannot be triggered from outside',
  'E5-6': 'The server would have to be killed in the middle of a call, and started again on its store',
  'E5-19': 'The server would have to be killed in the middle of a rollback, and started again on its store',
  'E6-8': 'Only the operator of the server can approve several calls; no message does it',
  'E7-5': 'Only a gateway passes provenance on, and its input is on the other side',
  'E8-9': 'How much a server buffers for a slow reader, and what it merges, depends on limits that it does not publish',
  'E9-9': 'Whether an import is pending depends on how long the server waits, which it does not publish',
  'E10-7': 'The conversion between two forms of a block is inside the server; E10-6 and L10.3-1 test each form',
  'E13-7': 'How long recommendations are cached is a matter between the server and its sources',
  'E14-7': 'A server sends it as an event only if its author does so, and no listed fact names the session',
  'E15-10': 'How much a server queues for a slow reader depends on limits that it does not publish',
  X6: 'Only the operator of the server can change a decision while a call runs',
  X7: 'The grant against which a name was checked is not visible; L6.6 and L6.7 test the consequences',
  X9: 'The time at which a price is reserved is not visible; E3-8 tests that refused calls cost nothing',
  X10: 'Limits and clocks of stores are inside the server',
  'L13.4-1': 'Whether a text overrides instructions or impersonates somebody depends on its meaning',
}

/** Of those that are seen: what of them is not, and why. */
export const hiddenParts: ReadonlyMap<string, string> = new Map([
  ['E1-1', 'Reading the manifests of other servers happens inside the server'],
  ['E2-3', 'The content of the journal is not visible; that nothing ran is tested'],
  ['E4-5', 'An inactivity timeout takes minutes, if there is one; the end of a requested grant is tested'],
  ['E5-7', 'A server does not publish how many keys it keeps, and for how long'],
  ['E5-17', 'The key under which a compensation runs is not visible; that it needs no new confirmation is tested'],
  ['E6-4', 'A confirmation is valid for up to five minutes, which is too long to wait in a scenario'],
  ['E9-2', 'How signatures are made and compared is not visible; what they refuse is tested'],
  ['E9-3', 'A transfer that outlives its address would take as long as the address is valid'],
  ['E14-3', 'The maximum age of a state is not published; tampered and foreign states are tested'],
  ['E15-5', 'Only the operator can cause shutdown and overload; expiry and the end of a grant (X5) are tested'],
  ['X8', 'Journal, trace and audit log are not visible; the id in the problem is tested'],
])

function of(extension: string, ...numbers: readonly number[]): readonly string[] {
  return numbers.map(number => `${extension}-${number}`)
}

/** By id: all that speak of servers. */
export const serverStatements: ReadonlyMap<string, Visibility> = new Map<string, Visibility>([
  ...seen.map(id => [id, 'seen'] as const),
  ...Object.entries(hidden).map(([id, why]) => [id, { hidden: why }] as const),
])
