/** An explanation of the audit log as a sentence and a graph of causes. */
import type { Explanation as HostExplanation, Noted } from '../../policy/audit/host-audit.ts'
import type { ExplainEdge, ExplainKind, ExplainNode, ExplainNote, Explanation } from '../contract/explain.ts'
import { whyOf } from './rows.ts'

const mostNotes = 2_000
const mostNodes = 200

/** What the audit log has about an id: sentence, nodes, edges and notes. */
export function explanationOf({ id, notes: all, joined }: HostExplanation): Explanation {
  const notes = all.slice(0, mostNotes)
  const graph = new CauseGraph()
  for (const [n, noted] of notes.entries()) graph.add(noted, n)
  const { nodes, edges, isCut } = graph.shown()
  return {
    ...{ id, sentence: sentenceOf(id, notes), nodes, edges, joined },
    notes: notes.map(noteOf),
    ...((isCut || all.length > notes.length) && { cut: true as const }),
  }
}

/** Events and turns are one node each, however many notes there are of them; each other note is a node inside its turn or event. */
class CauseGraph {
  readonly #nodes = new Map<string, ExplainNode & { readonly notes: number[] }>()
  readonly #edges = new Map<string, ExplainEdge>()

  add(noted: Noted, n: number): void {
    const { inferenceId, eventId, cause, kind, server, at, outcome, detail, conversation } = noted
    const event = eventId === undefined ? undefined : this.#event(eventId, server)
    const turn = inferenceId === undefined ? undefined : this.#turn(inferenceId, conversation)
    const begun = cause === undefined || cause === eventId || cause === inferenceId ? undefined : this.#event(cause, '')
    if (event !== undefined && turn !== undefined) this.#edge(event, turn, 'caused')
    if (begun !== undefined && turn !== undefined) this.#edge(begun, turn, 'caused')
    else if (begun !== undefined && event !== undefined) this.#edge(begun, event, 'caused')
    const own = isAboutWhole(kind) ? (kind === 'turn' ? turn : event) : undefined
    if (own !== undefined) {
      this.#learn(own, noted, n)
      return
    }
    const label = [nameOf(kind), detail, server].filter(each => each !== undefined && each !== '').join(' · ')
    const node = { id: `note:${n}`, kind: kindOf(kind), label, at, outcome, notes: [n], ...(server !== '' && { server }) }
    this.#nodes.set(node.id, node)
    const within = turn ?? event
    if (within !== undefined) this.#edge(within, node.id, 'part')
  }

  shown(): { readonly nodes: readonly ExplainNode[]; readonly edges: readonly ExplainEdge[]; readonly isCut: boolean } {
    const all = [...this.#nodes.values()]
    // Events and turns first, because the others hang on them.
    const ranked = all.toSorted((one, other) => Number(isNote(one)) - Number(isNote(other)))
    const ids = new Set(ranked.slice(0, mostNodes).map(({ id }) => id))
    return {
      nodes: all.filter(({ id }) => ids.has(id)),
      edges: [...this.#edges.values()].filter(({ from, to }) => ids.has(from) && ids.has(to)),
      isCut: all.length > mostNodes,
    }
  }

  #event(eventId: string, server: string): string {
    const id = `event:${eventId}`
    const known = this.#nodes.get(id)
    if (known === undefined || (known.server === undefined && server !== ''))
      this.#nodes.set(id, {
        ...{ id, kind: 'event', ref: eventId, notes: known?.notes ?? [] },
        label: server === '' ? 'event' : `event of ${server}`,
        ...(server !== '' && { server }),
        ...(known?.outcome !== undefined && { outcome: known.outcome }),
        ...(known?.at !== undefined && { at: known.at }),
      })
    return id
  }

  #turn(inferenceId: string, conversation: string | undefined): string {
    const id = `turn:${inferenceId}`
    const known = this.#nodes.get(id)
    if (known === undefined || (known.turn === undefined && conversation !== undefined))
      this.#nodes.set(id, {
        ...{ id, kind: 'turn', ref: inferenceId, notes: known?.notes ?? [] },
        label: conversation === undefined ? 'turn' : `turn in ${conversation}`,
        ...(known?.outcome !== undefined && { outcome: known.outcome }),
        ...(known?.at !== undefined && { at: known.at }),
        ...(conversation !== undefined && { turn: { conversation } }),
      })
    return id
  }

  #learn(id: string, { at, outcome }: Noted, n: number): void {
    const known = this.#nodes.get(id)
    if (known !== undefined) this.#nodes.set(id, { ...known, at: known.at ?? at, outcome, notes: [...known.notes, n] })
  }

  #edge(from: string, to: string, kind: ExplainEdge['kind']): void {
    this.#edges.set(`${from} ${to}`, { from, to, kind })
  }
}

function isNote({ kind }: ExplainNode): boolean {
  return kind !== 'event' && kind !== 'turn'
}

/** Notes about a turn or an event as a whole. */
function isAboutWhole(kind: string): boolean {
  return kind === 'turn' || kind === 'push' || kind === 'inbox'
}

function kindOf(kind: string): ExplainKind {
  if (kind === 'tool') return 'call'
  if (kind.startsWith('hook.')) return 'hook'
  return ['approval', 'grant', 'budget', 'rules', 'set', 'scope', 'pin'].includes(kind) ? 'decision' : 'note'
}

const names: Readonly<Record<string, string>> = {
  tool: 'call',
  'hook.before': 'hook before',
  'hook.after': 'hook after',
  inject: 'put into the prompt',
  approval: 'question',
}

function nameOf(kind: string): string {
  return names[kind] ?? kind
}

/** What happened, from the notes of the events and turns themselves. */
function sentenceOf(id: string, notes: readonly Noted[]): string {
  const event = notes.find(({ kind, eventId }) => kind === 'push' && eventId !== undefined)
  const turn = notes.findLast(({ kind }) => kind === 'turn')
  const calls = notes.filter(({ kind }) => kind === 'tool')
  const refused = notes.filter(({ outcome, why }) => outcome !== 'success' && why !== undefined)
  const parts = [
    event && `An event of ${event.server} ${event.outcome === 'success' ? 'was accepted' : `was ${words[event.outcome]}`}.`,
    turn &&
      `The turn ${turn.outcome === 'success' ? 'was answered' : `ended without an answer (${turn.detail ?? turn.outcome})`}${counted(calls)}.`,
    refused[0]?.why && `${upper(refused[0].why.message)} (${refused[0].why.rule}).`,
  ].filter(each => each !== undefined)
  return parts.length > 0 ? parts.join(' ') : `${notes.length} entries of the audit log are about ${id.slice(0, 100)}.`
}

const words: Readonly<Record<Noted['outcome'], string>> = {
  success: 'accepted',
  failure: 'given up',
  timeout: 'not answered in time',
  refused: 'refused',
  held: 'held',
  dropped: 'dropped',
}

function counted(calls: readonly Noted[]): string {
  if (calls.length === 0) return ''
  const tools = [...new Set(calls.map(({ detail, server }) => `${server}.${detail ?? ''}`))]
  const shown = tools.slice(0, 3).join(', ')
  return `, after ${calls.length === 1 ? 'a call' : `${calls.length} calls`} of ${shown}${tools.length > 3 ? ', …' : ''}`
}

function upper(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1)
}

function noteOf({ at, server, kind, outcome, why, ...noted }: Noted): ExplainNote {
  const { featureSet, inferenceId, eventId, conversation, cause, detail, ms, rule, by } = noted
  const more = { featureSet, inferenceId, eventId, conversation, cause, detail, ms, rule, by }
  const said = Object.fromEntries(Object.entries(more).filter(([, value]) => value !== undefined))
  return { at, server, kind, outcome, ...said, ...(why !== undefined && { why: whyOf(why) }) }
}
