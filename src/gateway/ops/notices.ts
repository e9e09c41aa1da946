/** What whoever runs a gateway has to hear of, because it waits for him or went wrong: told, or else written where its log goes. */
import { logFrom } from '../../core/log.ts'
import type { GatewayOptions } from '../options.ts'

export interface GatewayNotice {
  readonly kind: 'call-waits' | 'tool-held' | 'launch-held' | 'launch-changed' | 'audit-behind' | 'audit-lost' | 'audit-caught-up'
  /** One sentence, or two. */
  readonly message: string
  /** What can be done about it. */
  readonly fix: string
  /** Of what waits for an answer: what `approve` and `refuse` take. */
  readonly id?: string
}

export type TellNotice = (notice: GatewayNotice) => void

/** By its log that is an error, so that it is seen where nobody asked for more than those. */
export function noticesTo({ onNotice, log, onTrace, name = 'vivarium-gateway' }: GatewayOptions): TellNotice {
  if (onNotice !== undefined) return onNotice
  const to = logFrom(log, onTrace === undefined ? 'error' : 'silent').child({ server: name })
  return ({ kind, ...said }) => to.error(kind, said)
}

/** What somebody does who agrees. */
export function approveWith({ config, store = 'memory:' }: Pick<GatewayOptions, 'config' | 'store'>, id: string): string {
  if (config === undefined) return `gateway.approve('${id}'), or refuse`
  if (store === 'memory:') return 'Give the gateway a store (store: sqlite:PATH): then the command can answer'
  return `vivarium gateway approvals ${word(config)} --approve ${word(id)}`
}

/** As a word of a command line. */
function word(text: string): string {
  return /^[\w./:@%~-]+$/.test(text) ? text : JSON.stringify(text)
}
