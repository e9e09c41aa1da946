/**
 * What an answer is bound to. A plain yes counts for exactly what was asked: this server (the one that is connected under the name),
 * this definition of the tool, these arguments, asked for in this conversation by whoever began the turn. Only where the user chose
 * something wider, which the question showed in words, does a yes count for more.
 */
import { hash } from 'node:crypto'
import { canonicalJson } from '../../core/digest.ts'
import { clip, echo } from '../../jsonrpc/limits.ts'
import type { AskVerdict } from '../judge.ts'
import { beginners } from '../rules/begun-by.ts'
import type { Asked } from '../rules/rule.ts'

/**
 * How far an answer reaches. `call`: exactly what was asked. `tool`: every call of this tool, whatever its arguments. `scope`:
 * whatever the feature set does on these scopes, by any tool or by itself.
 */
export type Covers = 'call' | 'tool' | 'scope'

/** A wider answer that the user may choose, and what it covers. */
export interface WiderAnswer {
  readonly covers: Exclude<Covers, 'call'>
  /** What it covers, in words: show it before you offer it. */
  readonly text: string
}

/** The digests of the answers that count for this, by how far they reach. Of `scope` one for each scope: all are needed. */
export interface ApprovalBinding {
  readonly call: string
  readonly tool?: string
  readonly scope?: readonly string[]
}

/** `identity`: what is connected under the name of the server. */
export function boundOf(asked: Asked, asking: AskVerdict, identity: string | undefined): ApprovalBinding {
  const { kind, server, featureSet, tool, definition, payload, scope, tags, origin, begunBy, conversation } = asked
  const thing = { kind, server, identity, featureSet, tool, definition, payload, scope, tags, origin }
  const wider = widerAnswers(asked, asking)
  const offered = (covers: Covers): boolean => wider.some(one => one.covers === covers)
  return {
    call: bindingDigest({ covers: 'call', ...thing, begunBy, conversation }),
    ...(offered('tool') && {
      tool: bindingDigest({ covers: 'tool', server, identity, tool, definition, begunBy: beginners(begunBy) }),
    }),
    ...(offered('scope') && {
      scope: asking.scopes.map(each => bindingDigest({ covers: 'scope', server, identity, featureSet, scope: each })),
    }),
  }
}

/** An unusual spelling is approved as it is or not at all: nobody has it in mind who approves more. */
export function widerAnswers(asked: Asked, { about, scopes, flaw }: AskVerdict): readonly WiderAnswer[] {
  if (flaw !== undefined) return []
  const answers: WiderAnswer[] = []
  if (asked.kind === 'tool' && asked.definition !== undefined) answers.push({ covers: 'tool', text: everyCall(asked) })
  if (about === 'scope' && scopes.length > 0) {
    const places = scopes.map(({ label, payload }) => echo(label) + (payload === undefined ? '' : ` (${echo(payload)})`))
    const who = `${clip(asked.featureSet ?? '')} of ${clip(asked.server)}`
    answers.push({
      covers: 'scope',
      text: `everything that ${who} does on ${places.join(', ')}, by any of its tools or by itself`,
    })
  }
  return answers
}

function everyCall({ server, tool = '', begunBy }: Asked): string {
  const servers = beginners(begunBy).map(each => clip(each))
  const turns = servers.length === 0 ? 'turns that you begin' : `turns that events of ${servers.join(' and ')} begin`
  return `every call of the tool ${clip(tool)} of ${clip(server)}, with any arguments, in all ${turns}`
}

/** SHA-256 over canonical JSON. */
export function bindingDigest(bound: unknown): string {
  return hash('sha256', canonicalJson(bound) ?? '', 'base64url')
}
