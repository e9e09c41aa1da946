/**
 * Helpers of a live session: telling the server the selection, re-reading a changed manifest, and what the host declares in the
 * handshake.
 */
import { quoted, type Why, why } from '../../core/suggestion.ts'
import { pause } from '../../engine/backoff.ts'
import type { ClientSession } from '../../engine/client-feature.ts'
import { ConnectionError } from '../../jsonrpc/connection.ts'
import { isRecord, type Params } from '../../jsonrpc/message.ts'
import type { LiveHandlers } from './client-api.ts'
import {
  type Announcement,
  announcedBy,
  type DialectLabel,
  type EncodedSelection,
  readSelectionReply,
  type SelectionReply,
} from './dialects/messages.ts'
import { liveVersion, readLiveManifest, updateSets, updateSetsByRequest } from './feature-sets/messages.ts'

/** Minimum time between two reads of the manifest. */
const manifestMs = 1_000

/** How long to wait for a receipt: if the request is all the server got, and if it was notified before. */
const silenceMs = 15_000
const toldMs = 2_000

/**
 * Tells a server the selection, past middleware and retries, because it is part of opening the conversation. The request form comes
 * first, and the notification if the request is not understood or not answered. Servers of 0.2 get the notification first, because that
 * version has no such request. Returns the receipt, or undefined if there is none.
 */
export async function tellSelection(
  { engine, opened: { conversation } }: ClientSession,
  { byRequest, byNotice }: EncodedSelection,
  label: DialectLabel,
  signal: AbortSignal | undefined,
): Promise<SelectionReply | undefined> {
  const first = label === '0.2'
  if (first) await engine.tell(conversation, updateSets, byNotice)
  try {
    const timeoutMs = first ? toldMs : silenceMs
    const options = { ...(signal && { signal }), timeoutMs, totalMs: timeoutMs, quiet: true }
    return readSelectionReply(await engine.call(conversation, updateSetsByRequest, byRequest, options))
  } catch (error) {
    signal?.throwIfAborted()
    // If the connection is gone, another attempt makes no sense.
    const lost = error instanceof ConnectionError && error.kind !== 'status' && error.kind !== 'protocol'
    if (conversation.ended || lost) throw error
    if (!first) await engine.tell(conversation, updateSets, byNotice)
    return undefined
  }
}

/** Returns what re-reads the manifest after a change: one read at a time, at most one per second. */
export function manifestReader(session: ClientSession, stop: AbortSignal, read: (announced: Announcement) => void): () => void {
  // A change was announced that no read has begun after.
  let stale = false
  let reading = false
  const run = async (): Promise<void> => {
    while (stale && !stop.aborted) {
      stale = false
      try {
        const manifest = await session.request(readLiveManifest, {})
        if (isRecord(manifest)) read(announcedBy(manifest, session.opened.capabilities))
      } catch (error) {
        session.engine.trace('live-manifest-unread', error)
      }
      await pause(session.engine.clock, manifestMs, stop, true)
    }
    reading = false
  }
  return () => {
    stale = true
    if (reading) return
    reading = true
    void run()
  }
}

/** Explains that a server reports a set as unavailable: what is missing, and who can provide it. */
export function unavailable(featureSet: string, missing: readonly string[], announced: (path: string) => boolean): Why {
  const said = `The server reports that its feature set ${quoted(featureSet)} will not work`
  const [own, ours] = [missing.filter(path => !announced(path)), missing.filter(announced)].map(some =>
    some.map(quoted).join(', '),
  )
  const lacks = [
    ...(ours === '' ? [] : [`this host does not grant ${ours}`]),
    ...(own === '' ? [] : [`the server itself does not announce ${own}`]),
  ].join(', and ')
  const message = lacks === '' ? `${said}, but not which capability is missing` : `${said}: ${lacks}`
  const fix =
    ours === ''
      ? 'Ask the author of the server, or disable the feature set'
      : `Grant ${ours} to this server, or disable the feature set`
  return why('SET_UNAVAILABLE', 'receipt', message, fix)
}

// What a host declares before it knows the server.

/** The host's declaration in the handshake; the actual selection follows later. */
export function hostLive({ hello = {} }: LiveHandlers): Params {
  const { enabled = [], disabled = [], scopes } = hello
  return {
    version: liveVersion,
    pushEvents: true,
    contextHooks: { beforeInference: true, afterInference: { blocking: true } },
    inferenceRequest: { streaming: true },
    inferenceLifecycle: true,
    modelInfo: true,
    channels: true,
    featureSets: { enabled, disabled },
    ...(scopes === undefined ? {} : { scopes }),
  }
}
