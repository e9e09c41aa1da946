/** Reading where a result comes from. All of it is what others say: each record is labelled with who says it. */
import type { Provenance, Stamp } from '../../../core/artifact.ts'
import { defineClientFeature, extend } from '../../../engine/client-feature.ts'
import { declaration } from '../../../engine/extensions.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { ContentBlock } from '../../mcp/content/messages.ts'
import { type AnswerFacts, type ToolCallExtension, toolCalls } from '../../mcp/tools/messages.ts'
import { claimsIn, kept, provenanceExtension } from './messages.ts'

/** What an answer says of its origin. */
export interface ProvenanceAnswer {
  /** Where it comes from, as the server says: claims, each labelled so. */
  readonly provenance: ResultProvenance
}

const views: NonNullable<ToolCallExtension['views']> = { provenance: provenanceOf }

/** Reads where results come from. */
export const provenanceClient = defineClientFeature({
  name: 'provenance',
  options: {},
  setup: () => ({
    // Where each request declares for itself, calls of tools do.
    side: { capabilities: revision => (revision.era === 'session' ? declaration(revision, provenanceExtension) : {}) },
    extensions: [extend(toolCalls, { name: 'provenance', declares: { extension: provenanceExtension }, views })],
  }),
})

/** Somebody's word on where something comes from. */
export interface Source extends Provenance {
  /**
   * `claim`: what the author of the tool says, or what was handed on to him. `stamp`: what the server's runtime says of the call
   * itself. `client`: nobody said anything; this client knows only whom it asked.
   */
  readonly basis: 'claim' | 'stamp' | 'client'
  /** The server that says so. */
  readonly by: string
  /** For people: who says what, in a line without control characters. */
  readonly label: string
}

/** Where a result comes from, by all who say so. */
export interface ResultProvenance {
  /** Whether any source is claimed, for the result or for a block. Otherwise its origin is unknown. */
  readonly known: boolean
  /** What is claimed of the whole result, in order; where nothing is, the stamp, or as much as this client knows. */
  readonly sources: readonly Source[]
  /** The same and the stamp, as they came: to be handed on with `cite`. */
  readonly records: readonly Source[]
  /** What the server's runtime says of this call; undefined where it says nothing, or speaks of another one. */
  readonly stamp: (Source & { readonly stamp: Stamp }) | undefined
  /** Claims that the server left out. */
  readonly omitted: number
  /** Of one block: its own sources, else those of the whole result. */
  of(block: ContentBlock | number): readonly Source[]
}

/** Of a result and all its blocks no more is read. Whoever keeps to the limit of a result has fewer. */
const most = 1_000

function provenanceOf(answer: Omit<AnswerFacts, 'found'>): ResultProvenance {
  const { server, tool, content, meta } = answer
  let left = most
  const read = (from: unknown): readonly Provenance[] | undefined => {
    const claims = claimsIn(from, left)
    left -= claims?.length ?? 0
    return claims
  }
  const claim = (record: Provenance): Source => labelled(record, 'claim', server)
  const records = read(meta) ?? []
  const last = records.at(-1)
  // Only the runtime that was asked can speak of this call: what others have stamped is handed on, and stays a claim.
  const own = last !== undefined && isStamped(last) && last.stamp.server === server && last.stamp.tool === tool
  const stamp = own ? { ...labelled(last, 'stamp', server), stamp: last.stamp } : undefined
  const claims = (own ? records.slice(0, -1) : records).map(claim)
  const fallback = stamp ?? labelled({ source: `${server}:${tool}` }, 'client', server)
  const blocks = content.map(block => read(block?._meta)?.map(claim))
  const sources = claims.length > 0 ? claims : [fallback]
  return {
    known: claims.length > 0 || blocks.some(block => block !== undefined && block.length > 0),
    sources,
    records: claims.length > 0 && stamp !== undefined ? [...claims, stamp] : sources,
    stamp,
    omitted: stamp?.stamp.omitted ?? 0,
    of: block => {
      const own = blocks[typeof block === 'number' ? block : content.indexOf(block)]
      if (own === undefined) return sources
      return own.length > 0 ? own : [fallback]
    },
  }
}

function isStamped(record: Provenance): record is Provenance & { readonly stamp: Stamp } {
  return record.stamp !== undefined
}

function labelled(record: Provenance, basis: Source['basis'], by: string): Source {
  return kept(record, { ...record, basis, by, label: labelOf(record, basis, clip(by)) })
}

function labelOf(record: Provenance, basis: Source['basis'], by: string): string {
  if (basis === 'client') return `${clip(record.source)}, of unknown origin`
  if (basis === 'stamp') return `${by} states that its tool ${clip(record.stamp?.tool ?? '')} made this`
  const { source, location = {}, confidence } = record
  const places = Object.entries(location).map(([name, value]) => `${wordOf(name)} ${clip(String(value))}`)
  return `${by} claims: ${[clip(source), ...places].join(', ')}${confidence === undefined ? '' : ` (${confidence})`}`
}

function wordOf(name: string): string {
  return name === 'jsonPath' ? 'at' : name === 'urlFragment' ? 'at #' : name
}
