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
  'E2-7': 'What a server logs, or hands on to others, is not on its wire',
  'E4-6': 'Revoking is done by whoever runs the server; no message does it',
  'E4-8': 'A decision that fails inside the server cannot be brought about from outside',
  'E5-6': 'The server would have to be killed in the middle of a call, and started again on its store',
  'E5-19': 'The server would have to be killed in the middle of a rollback, and started again on its store',
  'E6-8': 'An approval of several calls is given by whoever runs the server; no message gives it',
  'E7-5': 'Only a gateway hands provenance on, and what it was given is on its other side',
  'E8-9': 'How much a server buffers for a slow reader, and what it coalesces, depends on its limits, which it does not tell',
  'E9-9': 'Whether an import is pending depends on how long the server waits, which it does not tell',
  'E10-7': 'The conversion between two forms of a block is inside the server; each form alone is seen in E10-6 and L10.3-1',
  'E13-7': 'How long recommendations are kept is between the server and its sources',
  'E14-7': 'A server tells it by events only where its author says so, and no listed fact says which session is meant',
  'E15-10': 'How much a server queues for a slow reader depends on its limits, which it does not tell',
  X6: 'A decision that changes while a call is on its way is changed by whoever runs the server',
  X7: 'Against which grant a name was checked is not on the wire; what follows is seen in L6.6 and L6.7',
  X9: 'When a price was reserved is not on the wire; that refused calls cost nothing is seen in E3-8',
  X10: 'Bounds and clocks of stores are inside the server',
  'L13.4-1': 'Whether a text overrides instructions or impersonates somebody is a matter of its meaning',
}

/** Of those that are seen: what of them is not, and why. */
export const hiddenParts: ReadonlyMap<string, string> = new Map([
  ['E1-1', 'Reading the manifests of others is done inside'],
  ['E2-3', 'What the journal holds is not on the wire; that nothing ran is'],
  ['E4-5', 'A time of inactivity is some minutes, if there is one; the end of a grant that was asked for is seen'],
  ['E5-7', 'How many keys a server keeps, and for how long at most, it does not tell'],
  ['E5-17', 'Under which key a compensation runs is inside; that it needs no new yes is seen'],
  ['E6-4', 'A yes lasts up to five minutes, and its end is not told: who waits that long for a scenario?'],
  ['E9-2', 'How signatures are made and compared is inside; what they refuse is seen'],
  ['E9-3', 'A transfer that outlives its address would have to be as slow as the address lasts'],
  ['E14-3', 'How old a state may become is not told; tampered, foreign and of another principal are seen'],
  [
    'E15-5',
    'Shutdown and overload are brought about by whoever runs the server; the end of its time, and of a grant (X5), are seen',
  ],
  ['X8', 'Journal, trace and audit are inside; the id in the problem is seen'],
])

function of(extension: string, ...numbers: readonly number[]): readonly string[] {
  return numbers.map(number => `${extension}-${number}`)
}

/** By id: all that speak of servers. */
export const serverStatements: ReadonlyMap<string, Visibility> = new Map<string, Visibility>([
  ...seen.map(id => [id, 'seen'] as const),
  ...Object.entries(hidden).map(([id, why]) => [id, { hidden: why }] as const),
])
