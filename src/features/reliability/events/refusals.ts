/** Why there are no events, in words that say what to do. */
import { isFinalError } from '../../../engine/backoff.ts'
import { McpError } from '../../../jsonrpc/error.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import { type EndReason, eventsExtension, type WireSubscribed } from './messages.ts'

export function noEvents(names: readonly string[]): McpError {
  const wanted = names.map(name => clip(name)).join(', ')
  return new McpError(
    'capability-missing',
    `The server offers no events (${eventsExtension}), so not ${wanted}. Watch its lists by changes() or a resource by resourceUpdates(), ` +
      'or ask a tool from time to time; a server of this library offers them by server.event(name, { … })',
  )
}

export function subscriptionDenied({ reason, supported_events: supported = [] }: WireSubscribed): McpError {
  const offered = Array.isArray(supported) ? supported.filter(name => typeof name === 'string').map(name => clip(name)) : []
  const why = typeof reason === 'string' ? clip(reason, 300) : 'it gives no reason'
  return new McpError(
    'invalid-params',
    `The server denies the events: ${why}. It offers ${offered.slice(0, 20).join(', ') || 'none'}`,
    {
      data: { supported_events: offered },
    },
  )
}

export function eventsEndedError(reason: EndReason, names: readonly string[]): McpError {
  const wanted = names.map(name => clip(name)).join(', ')
  if (reason === 'withdrawn') return new McpError('capability-missing', `The server no longer offers ${wanted}`)
  return new McpError('insufficient-scope', `The right to hear ${wanted} has ended; get it again before you subscribe anew`)
}

/** The server knows no such method. */
export function noMethod(error: unknown): boolean {
  return error instanceof McpError && (error.kind === 'method-not-found' || error.code === -32601)
}

/** Whether it may go better the next time. */
export function retries(error: unknown): boolean {
  return !isFinalError(error) || (error instanceof McpError && error.kind === 'busy')
}
