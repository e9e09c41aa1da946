/**
 * Results that are too long for a prompt: kept on the store in pieces, while the model gets the beginning and a reference by which it
 * can read on.
 */
import type { LiveBlock } from '../../features/live/content/messages.ts'
import { clip } from '../../jsonrpc/limits.ts'
import type { Op, Store } from '../../stores/store.ts'
import { put } from '../../stores/store.ts'
import { conversationKey } from './conversation-log.ts'
import type { LoopLimits } from './limits.ts'
import { hostText, textBlock } from './model-content.ts'

/** Below the store's limit for one value, whatever the characters. */
const pieceLength = 1_000_000
/** Characters of pictures and sound in one result. */
const mediaLength = 6_000_000

interface Shortened {
  readonly content: readonly LiveBlock[]
  /** Undefined: nothing had to be cut. */
  readonly reference: string | undefined
  /** To be written with the result. */
  readonly ops: readonly Op[]
}

/** `reference`: the name it is to have; only the conversation it belongs to can read it. */
export function shortenResult(
  given: readonly LiveBlock[],
  conversation: string,
  reference: string,
  limits: LoopLimits,
): Shortened {
  const content = lighter(given)
  const words = content.reduce((sum, block) => sum + (block.type === 'text' ? block.text.length : 0), 0)
  if (words <= limits.resultLength) return { content, reference: undefined, ops: [] }
  const whole = content.flatMap(block => (block.type === 'text' ? [block.text] : [])).join('\n')
  const kept = whole.slice(0, limits.keptLength)
  const ops: Op[] = []
  for (let at = 0; at < kept.length; at += pieceLength)
    ops.push(
      put(
        pieceKey(conversation, reference, at / pieceLength),
        JSON.stringify({ length: kept.length, text: kept.slice(at, at + pieceLength) }),
      ),
    )
  const shown = cutAt(kept, limits.resultLength)
  const lost = whole.length > kept.length ? ` Of it the first ${kept.length} are kept.` : ''
  const note = `[This is the beginning of ${whole.length} characters.${lost} Read on with read_result {"id":"${reference}","offset":${shown.length}}.]`
  return { content: [textBlock(shown), hostText(note), ...content.filter(block => block.type !== 'text')], reference, ops }
}

/** Pictures and sound as long as they fit beside each other into one value of the store; of the others the model is told. */
function lighter(content: readonly LiveBlock[]): readonly LiveBlock[] {
  let left = mediaLength
  return content.map(block => {
    if (block.type !== 'image' && block.type !== 'audio') return block
    left -= block.data.length
    if (left >= 0) return block
    left += block.data.length
    return textBlock(
      `[${block.type}, ${clip(block.mimeType)}, ${Math.floor((block.data.length * 3) / 4)} bytes: too large to be shown]`,
    )
  })
}

/** A part of a kept result; undefined where there is none of that name. */
export async function readKeptResult(
  store: Store,
  conversation: string,
  reference: string,
  offset: number,
  length: number,
): Promise<{ readonly text: string; readonly end: number; readonly of: number } | undefined> {
  let found = ''
  let of: number | undefined
  for (let piece = Math.floor(offset / pieceLength); ; piece++) {
    const entry = await store.get(pieceKey(conversation, reference, piece))
    if (entry === undefined) break
    const kept = JSON.parse(entry.value) as { readonly length: number; readonly text: string }
    of = kept.length
    found += kept.text.slice(Math.max(0, offset - piece * pieceLength), offset + length - piece * pieceLength)
    if ((piece + 1) * pieceLength >= Math.min(of, offset + length)) break
  }
  if (of === undefined) return undefined
  const part = cutAt(found, length)
  return { text: part, end: offset + part.length, of }
}

function pieceKey(conversation: string, reference: string, piece: number): string {
  return `result/${conversationKey(conversation)}/${encodeURIComponent(reference)}/${String(piece).padStart(4, '0')}`
}

/** Never between the halves of one character. */
function cutAt(words: string, length: number): string {
  const cut = words.slice(0, length)
  return cut.length < words.length && /[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut
}
