/** Client side of provenance: reads where a result comes from. Everything is a claim of somebody, and is labelled so. */
import type { Provenance, Stamp } from '../../../core/artifact.ts'
import { defineClientFeature, extend } from '../../../engine/client-feature.ts'
import { extensionCapability } from '../../../engine/extensions.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { ContentBlock } from '../../mcp/content/messages.ts'
import { type AnswerFacts, toolCalls } from '../../mcp/tools/messages.ts'
import { claimsIn, provenanceExtension, withOriginalRecord } from './messages.ts'

/** What an answer says about its origin. */
export interface ProvenanceAnswer {
  /** The sources, as the server claims them. */
  readonly provenance: ResultProvenance
}

const views = { provenance: provenanceOf }

/** The client feature: reads provenance. */
export const provenanceClient = defineClientFeature({
  name: 'provenance',
  options: {},
  setup: () => ({
    // On stateless wires each tool call declares the extension.
    side: { capabilities: revision => (revision.era === 'session' ? extensionCapability(revision, provenanceExtension) : {}) },
    extensions: [extend(toolCalls, { name: 'provenance', declares: { extension: provenanceExtension }, views })],
  }),
})

/** A source, and who claims it. */
export interface Source extends Provenance {
  /**
   * `claim`: stated by the tool's author. `stamp`: stated by the server's runtime about the call. `client`: nobody stated anything;
   * only the server is known.
   */
  readonly basis: 'claim' | 'stamp' | 'client'
  /** The server that states it. */
  readonly by: string
  /** One line for people. */
  readonly label: string
}

/** The provenance of a result. */
export interface ResultProvenance {
  /** Whether any source is claimed. */
  readonly known: boolean
  /** The claims about the whole result; otherwise the stamp, or what the client knows. */
  readonly sources: readonly Source[]
  /** The claims and the stamp, for passing on with `cite`. */
  readonly records: readonly Source[]
  /** The stamp of this call; undefined if there is none. */
  readonly stamp:
    | (Source & {
        /** The facts of the stamp. */
        readonly stamp: Stamp
      })
    | undefined
  /** Claims that the server omitted. */
  readonly omitted: number
  /** The sources of one block, or those of the result. */
  of(block: ContentBlock | number): readonly Source[]
}

/** Limit of records that are read per result. */
const most = 1_000

// Reads all records of a result.
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
  // Only the called server can stamp this call; other stamps are claims.
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
  return withOriginalRecord(record, { ...record, basis, by, label: labelOf(record, basis, clip(by)) })
}

// The text for people.
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
