/**
 * Requests to addresses that a server chose: public https ones, and loopback only if the server itself runs on this machine.
 * Loaded with the first such address.
 */
import type { Outbound } from '../core/outbound.ts'
import { createOutbound } from '../transports/outbound/outbound.ts'

/** The guarded `fetch` for addresses that this server names; `allow` adds ranges. */
export function outboundFor(server: URL, allow: readonly string[] = []): Outbound {
  return createOutbound({ loopback: isLoopbackServer(server), allow })
}

/** Whether the server runs on this machine. */
export function isLoopbackServer({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
}
