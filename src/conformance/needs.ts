/** What a scenario needs of a server to say anything: extensions, capabilities, tools that are found or named, prompts, resources. */

import { extensionId } from './said.ts'
import type { Advertised } from './scenario.ts'
import type { Finder } from './tools.ts'

/** An extension by its short name, a tool that has to be found, or any other reason why a scenario cannot be judged on a peer. */
export type Need = string | Finder | ((peer: Advertised) => string | undefined)

/** The first reason why a scenario has to be left out; undefined: it can be judged. */
export function missingIn(peer: Advertised, needs: readonly Need[]): string | undefined {
  return needs.map(need => lackOf(peer, need)).find(why => why !== undefined)
}

function lackOf(peer: Advertised, need: Need): string | undefined {
  if (typeof need === 'function') return need(peer)
  if (typeof need !== 'string') return need.find(peer) === undefined ? `The server lists no tool that ${need.that}` : undefined
  return peer.extension(extensionId(need)) === undefined ? `The server does not advertise ${extensionId(need)}` : undefined
}

/** It holds of the peer. */
export function peerHas(fits: (peer: Advertised) => boolean, why: string): Need {
  return peer => (fits(peer) ? undefined : why)
}

/** A capability is advertised. */
export function capability(path: string): Need {
  return peerHas(peer => peer.has(path), `the server does not advertise ${path}`)
}

/** A fixture of conformance suites is listed. */
export function tool(name: string): Need {
  return peerHas(peer => peer.tool(name) !== undefined, `the server has no tool ${name}`)
}

/** A fixture that may be called without the leave to write. */
export function callableFixture(name: string): readonly Need[] {
  return [tool(name), peerHas(peer => peer.mayCall(name), `${name} may write, so the kit does not call it (use --allow-writes)`)]
}

/** A prompt of conformance suites. */
export function prompt(name: string): Need {
  return peerHas(peer => peer.prompt(name) !== undefined, `the server has no prompt ${name}`)
}

/** A resource of conformance suites, as it is listed. */
export function resource(uri: string): Need {
  return peerHas(peer => peer.resources.some(one => one['uri'] === uri), `the server has no resource ${uri}`)
}
