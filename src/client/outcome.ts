/** What came of a call of a tool. Where it comes from is read when somebody asks. */
import type { Problem } from '../core/problem.ts'
import type { StateReport } from '../features/live/checkpoints/messages.ts'
import type { ContentBlock } from '../features/mcp/content/messages.ts'
import type { CallToolResult } from '../features/mcp/tools/messages.ts'
import { type CallUsage, usageIn } from '../features/reliability/cost/client.ts'
import { type Suggestion, suggestionIn } from '../features/reliability/intent/client.ts'
import { warningsIn } from '../features/reliability/media/messages.ts'
import { problemIn } from '../features/reliability/problem/client.ts'
import { provenanceOf, type ResultProvenance } from '../features/reliability/provenance/client.ts'

/** What came of a call. What a tool that failed left as structured content is nothing to rely on. */
export type ToolOutcome<T = unknown> = ToolAnswer<false, T> | ToolAnswer<true, unknown>

interface ToolAnswer<Failed extends boolean, T> {
  readonly content: readonly ContentBlock[]
  /** All text blocks, joined. */
  readonly text: string
  /**
   * With the option `output` what its schema made of it. Without one as it came, undefined where nothing did: wires below
   * 2026-07-28 know only objects, so a server may have put another value under `result`.
   */
  readonly structured: T
  readonly isError: Failed
  /** Why it failed, where the server tells that in so many words. */
  readonly problem: Failed extends true ? Problem | undefined : undefined
  readonly meta: Readonly<Record<string, unknown>> | undefined
  /** What it cost, where the server tells. */
  readonly cost: CallUsage | undefined
  /** Another call that the server thinks would serve better: its words, not more. */
  readonly suggestion: Suggestion | undefined
  /** The suggestion whose outcome this is, where the host had it followed. */
  readonly followed?: Suggestion
  /** Where it comes from, as the server says: claims, each labelled so. */
  readonly provenance: ResultProvenance
  /** What is odd about it though it was given, a sentence each: such as media of a type that the tool does not announce. */
  readonly warnings: readonly string[]
  /** The state that a server of MCP Live left behind. */
  readonly live: StateReport | undefined
}

/** Whom it was asked of. */
export interface Asked {
  readonly server: string
  readonly tool: string
  /** Undefined: nothing was looked at here. */
  readonly warnings: readonly string[] | undefined
  readonly live: StateReport | undefined
}

type Why<Failed extends boolean> = ToolAnswer<Failed, unknown>['problem']

class Answered<Failed extends boolean> implements ToolAnswer<Failed, unknown> {
  readonly content: readonly ContentBlock[]
  readonly text: string
  readonly structured: unknown
  readonly isError: Failed
  readonly problem: Why<Failed>
  readonly meta: Readonly<Record<string, unknown>> | undefined
  readonly cost: CallUsage | undefined
  readonly suggestion: Suggestion | undefined
  readonly #asked: Asked
  #provenance: ResultProvenance | undefined = undefined

  constructor(isError: Failed, problem: Why<Failed>, asked: Asked, { content, _meta }: CallToolResult, structured: unknown) {
    this.content = Array.isArray(content) ? content : []
    this.text = textOf(this.content)
    this.structured = structured
    this.isError = isError
    this.problem = problem
    this.meta = _meta
    this.cost = usageIn(_meta)
    this.suggestion = suggestionIn(_meta)
    this.#asked = asked
  }

  get provenance(): ResultProvenance {
    const { server, tool } = this.#asked
    this.#provenance ??= provenanceOf({ server, tool, content: this.content, meta: this.meta })
    return this.#provenance
  }

  get live(): StateReport | undefined {
    return this.#asked.live
  }

  get warnings(): readonly string[] {
    return this.#asked.warnings ?? warningsIn(this.meta)
  }
}

export function outcome(asked: Asked, result: CallToolResult, structured: unknown): ToolOutcome {
  if (result.isError === true) return new Answered(true, problemIn(result._meta), asked, result, structured)
  return new Answered(false, undefined, asked, result, structured)
}

/** The same outcome, of a call that was made because the server suggested it. */
export function following(outcome: ToolOutcome, suggestion: Suggestion): ToolOutcome {
  return Object.assign(outcome, { followed: suggestion })
}

export function textOf(content: readonly ContentBlock[]): string {
  const first = content[0]
  if (content.length === 1 && first?.type === 'text') return textIn(first)
  return content
    .filter(block => block?.type === 'text')
    .map(textIn)
    .join('\n')
}

/** A text that is none would fail when it is put together with others. */
function textIn(block: ContentBlock): string {
  return block.type === 'text' && typeof block.text === 'string' ? block.text : ''
}
