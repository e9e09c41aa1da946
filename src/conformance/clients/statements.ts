/** The statements of the extensions and of MCP Live that speak of clients and hosts: which of them a scenario shows, and why the others show nothing. */
import type { Visibility } from '../statements.ts'

const seen: readonly string[] = [
  ...['E1-4', 'E1-6', 'E2-4', 'E2-7', 'E3-1', 'E3-2', 'E3-7', 'E4-10', 'E5-1', 'E5-2', 'E5-8', 'E5-12', 'E5-14', 'E5-15'],
  ...['E6-1', 'E6-5', 'E6-10', 'E8-6', 'E8-7', 'E9-1', 'E9-4', 'E9-5', 'E10-2', 'E11-3', 'E11-4', 'E11-5', 'E11-6', 'E13-2'],
  ...['E14-1', 'E14-2', 'E14-3', 'E14-4', 'E14-6', 'E15-3', 'E15-4', 'E15-6', 'E15-7', 'E15-9', 'E15-11'],
  ...['L3.1-1', 'L3.3-1', 'L3.3-2', 'L4-1', 'L4.1-2', 'L4.1-3', 'L5.1-2', 'L5.2-1', 'L6.2-3', 'L6.3-1', 'L6.4-1', 'L6.5-1'],
  ...['L6.5-2', 'L6.6-1', 'L6.6-2', 'L6.6-3', 'L6.6-4', 'L6.7-1', 'L6.7-4', 'L7.2-1', 'L7.2-2', 'L7.3-1', 'L7.5-1', 'L7.6-1'],
  ...['L7.6-2', 'L7.6-3', 'L8.2-1', 'L8.2-2', 'L8.3-1', 'L8.3-2', 'L8.3-3', 'L8.4-1', 'L8.4-2', 'L8.5-1', 'L8.6-1', 'L8.6-2'],
  ...['L8.7-1', 'L9.2-1', 'L9.3-1', 'L9.3-2', 'L9.4-1', 'L10.1-1'],
  ...['L10.1-2', 'L10.5-1', 'L10.5-2', 'L10.6-1', 'L10.7-1', 'L10.7-2'],
  ...['L11.2-1', 'L11.3-1', 'L11.3-2', 'L11.4-1', 'L11.4-2', 'L12-1'],
]

const hidden: Readonly<Record<string, string>> = {
  'E2-8': 'How a suggestion is shown to a user is not visible in messages',
  'E3-6': 'The shortest of these waits is 10 s, which would slow down every run',
  'E5-20': 'A saga spans several servers, and its log is in the client: one scripted server sees neither',
  'E7-6': 'What a client does with an unnamed origin is not visible in messages',
  'E7-8': 'How a claim is labelled for a user is not visible in messages',
  'E13-3': 'Which registries a client asks is not visible to this server',
  'E13-4': 'Whether a recommendation is marked as untrusted is visible only to the user',
  'E13-6': 'Visits to addresses that a registry names do not reach the scripted server',
  'L10.8-1': 'The order of injections of several servers is in the prompt, which no server sees',
  'L13.2-1': 'The log of a host is not visible in messages',
  'L13.3-1': 'What a failed hook shows the user is not visible to servers',
}

/** By id: all that speak of clients or hosts. */
export const callerStatements: ReadonlyMap<string, Visibility> = new Map<string, Visibility>([
  ...seen.map(id => [id, 'seen'] as const),
  ...Object.entries(hidden).map(([id, why]) => [id, { hidden: why }] as const),
])
