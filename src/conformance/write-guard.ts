/** The last thing before the wire: a call of a tool that may write does not leave the kit unless that was allowed. */
import { isRecord } from '../jsonrpc/message.ts'
import type { Advertised } from './scenario.ts'
import type { SendGuard } from './wire/peer.ts'

export interface WriteGuard {
  readonly check: SendGuard
  /** From here on it is known which tools there are. */
  learn(peer: Advertised): void
}

export function writeGuard(allowWrites: boolean): WriteGuard {
  let known: Advertised | undefined
  function check(message: unknown): void {
    if (allowWrites) return
    if (Array.isArray(message)) return message.forEach(check)
    const name = calledTool(message)
    if (name === undefined || known?.tool(name) === undefined || known.mayCall(name)) return
    throw new Error(`The kit would call the tool ${name}, which may write; that was not allowed`)
  }
  return {
    check,
    learn(peer) {
      known = peer
    },
  }
}

function calledTool(message: unknown): string | undefined {
  if (!isRecord(message) || !isRecord(message['params'])) return undefined
  const isCall = message['method'] === 'tools/call' || message['method'] === 'tools/invoke'
  const name = message['params']['name']
  return isCall && typeof name === 'string' ? name : undefined
}
