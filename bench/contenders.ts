/** Who takes part: which script, which carriers, which revisions. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Options, wanted } from './options.ts'
import type { Revision, WorkName } from './work.ts'

export type Carrier = 'stdio' | 'http'
export type Mode = 'tools' | 'list'

export interface Contender {
  readonly name: string
  readonly stdio: readonly Revision[]
  readonly http: readonly Revision[]
  /** Works it takes part in; all of them unless given. */
  readonly works?: readonly WorkName[]
  /** The revision it is really asked for in the 2025-11-25 rows, where it knows only older ones. */
  readonly handshake?: string
  readonly accept?: string
  /** Flags of Node that its process is started with. */
  readonly flags?: readonly string[]
  script(carrier: Carrier): string
  args(carrier: Carrier, mode: Mode, revision: Revision): string[]
}

const BOTH: readonly Revision[] = ['2025-11-25', '2026-07-28']

export const floor: Contender = {
  name: 'floor',
  stdio: BOTH,
  http: BOTH,
  script: carrier => `servers/floor-${carrier}.mjs`,
  args: (_carrier, mode) => [mode],
}

const peers: readonly Contender[] = [
  { name: 'sdk-v1', stdio: ['2025-11-25'], http: ['2025-11-25'], ...server('sdk-v1') },
  { name: 'sdk-v2', stdio: BOTH, http: BOTH, ...server('sdk-v2') },
  {
    name: 'mcp-lite',
    stdio: [],
    http: ['2025-11-25'],
    // It knows nothing newer, and streams every answer to a client that also accepts SSE, as clients must:
    // asked for JSON alone it does less work and stays comparable.
    handshake: '2025-06-18',
    accept: 'application/json',
    ...server('mcp-lite'),
  },
]

const ours: readonly Contender[] = [
  { name: 'vivarium', stdio: BOTH, http: BOTH, ...server('vivarium', 'zod') },
  {
    name: 'vivarium-json',
    stdio: BOTH,
    http: BOTH,
    // The schema language shows only where arguments are validated.
    works: ['echo', 'form20'],
    ...server('vivarium', 'json'),
  },
]

function server(file: string, ...more: string[]): Pick<Contender, 'script' | 'args'> {
  return {
    script: () => `servers/${file}.mjs`,
    args: (carrier, mode, revision) => [carrier, mode, revision, ...more],
  }
}

/** Whether `vivarium/server` and `vivarium/client` lead to built files. */
export function built(): boolean {
  try {
    return ['vivarium/server', 'vivarium/client'].every(entry => existsSync(fileURLToPath(import.meta.resolve(entry))))
  } catch {
    return false
  }
}

/** The contenders of this run; the floor is always there, being the measure. */
export function chooseContenders(options: Options): readonly Contender[] {
  const present = built() ? [...peers, ...ours] : peers
  return [floor, ...present.filter(contender => wanted(options, contender.name))]
}
