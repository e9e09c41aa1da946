/** What a call of a tool declares, on wires where each request does: what its server has a use for, and no more. */
import type { SendOptions } from '../engine/calls.ts'
import { declared } from '../engine/extensions.ts'
import { takingTasks } from '../features/mcp/tasks/messages.ts'
import { mediaExtension } from '../features/reliability/media/messages.ts'
import { provenanceExtension } from '../features/reliability/provenance/messages.ts'
import { streamingExtension } from '../features/reliability/streaming/messages.ts'
import type { Peer } from '../revisions/index.ts'

/** Extensions that a result speaks of only to those who declare them. */
const told = [provenanceExtension, mediaExtension]

/** `hears`: it wants to hear of progress. */
export function declaring(send: SendOptions, peer: Peer | undefined, hears: boolean): SendOptions {
  if (peer === undefined || peer.revision.era === 'session') return send
  const known = (hears ? [...told, streamingExtension] : told).filter(id => declared(peer, id) !== undefined)
  if (known.length === 0) return send
  return { ...send, declares: { extensions: Object.fromEntries(known.map(id => [id, {}])) } }
}

/** The answer may be a task. */
export function takingTask(send: SendOptions): SendOptions {
  const { declares } = send
  if (declares === undefined) return { ...send, declares: takingTasks }
  const said = declares['extensions'] as object | undefined
  return { ...send, declares: { ...declares, extensions: { ...said, ...takingTasks.extensions } } }
}
