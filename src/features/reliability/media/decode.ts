/** Media become artifacts. Loaded when somebody first wants bytes. */
import { type Artifact, artifactOf, sniff } from '../../../core/artifact.ts'
import { base64Head, fromBase64 } from '../../../core/base64.ts'
import { problem } from '../../../core/problem.ts'
import { isRecord } from '../../../jsonrpc/message.ts'
import { claimsIn } from '../provenance/messages.ts'
import { breachOf, refusedInput } from './check.ts'
import { type MediaPiece, piecesOfArguments } from './pieces.ts'
import type { MediaValue, ReadMediaOptions } from './read.ts'

const standardMax = 16 * 1024 * 1024

export async function decodeMedia(
  value: MediaValue | undefined,
  { type, types, maxBytes = standardMax }: ReadMediaOptions,
): Promise<Artifact & { readonly by: 'value' }> {
  const piece = pieceOf(value, type)
  const breach = breachOf([piece], { types, max: maxBytes, strict: types !== undefined, byReference: false })
  if (breach !== undefined) throw refusedInput(breach)
  const bytes = fromBase64(piece.data)
  if (bytes === undefined) throw nothing()
  const claims = isRecord(value) ? claimsIn(value['_meta']) : undefined
  return artifactOf(bytes, piece.type ?? sniff(base64Head(piece.data)) ?? 'application/octet-stream', claims)
}

/** A block with an embedded resource holds it one level below. */
function pieceOf(value: MediaValue | undefined, type: string | undefined): MediaPiece & { readonly data: string } {
  const inner = isRecord(value) && isRecord(value['resource']) ? value['resource'] : value
  const schema = { contentEncoding: 'base64', ...(type === undefined ? {} : { contentMediaType: type }) }
  const [found] = piecesOfArguments({ media: inner }, { properties: { media: schema } })
  if (found?.data === undefined || (isRecord(inner) && found.where !== 'arguments.media')) throw nothing()
  return { where: 'media', type: found.type, data: found.data }
}

function nothing() {
  return problem('INVALID_INPUT', 'There are no media to be read here', {
    suggestion: 'Give a content block with bytes, { mimeType, data }, a data URL, or base64',
    details: { block: 'media', rule: 'type' },
  })
}
