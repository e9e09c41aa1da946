/** The way to addresses that a server chose: public https ones, and this machine only where the server itself is on it. */
import type { Outbound } from '../core/outbound.ts'
import { createOutbound } from '../transports/outbound/outbound.ts'

/** Reaches addresses that this server names, and those that are allowed. */
export function outboundFor(server: URL, allow: readonly string[] = []): Outbound {
  return createOutbound({ loopback: isLoopbackServer(server), allow })
}

/** Whether the server runs on this machine. */
export function isLoopbackServer({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
}
