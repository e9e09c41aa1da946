/**
 * Runs the program of a linear pattern. All places where the pattern may be advance together, so there is no going back. Each set of
 * places met is remembered with where each character leads from it: mostly a character costs one look into a table.
 */
import type { Meter } from './meter.ts'

export type Test = (char: string, code: number) => boolean
export type Assertion = '^' | '$' | '\\b' | '\\B'
export type Instruction =
  | { readonly op: 'char'; readonly test: Test }
  | { readonly op: 'assert'; readonly assertion: Assertion }
  | { readonly op: 'split'; to: number; or: number }
  | { readonly op: 'match' }

/** What stands before or behind a position, as far as an assertion can tell. */
type Side = 'edge' | 'word' | 'other'

/** A set of places in the program, not yet followed beyond what consumes nothing: that depends on the next character. */
interface State {
  readonly places: readonly number[]
  readonly before: Side
  readonly ascii: (State | undefined)[]
  readonly others: Map<number, State>
  /** Whether the text may end here; unknown until asked. */
  ends: boolean | undefined
}

/** Sets that are remembered, and characters beyond ASCII of all of them. When full, all are forgotten: honest patterns need few. */
const maxStates = 512
const maxOthers = 4_096
/** Making a set, and its table. */
const statePrice = 160
/** A character beyond ASCII is asked of the native engine. */
const otherPrice = 6

export class Automaton {
  readonly #program: readonly Instruction[]
  /** The round in which a place was last entered: none is entered twice in one. */
  readonly #entered: Int32Array
  /** The pattern can begin only where the text does. */
  readonly #anchored: boolean
  #round = 0
  #states = new Map<string, State>()
  #others = 0
  #start: State | undefined
  #meter: Meter | undefined

  constructor(program: readonly Instruction[]) {
    this.#program = program
    this.#entered = new Int32Array(program.length)
    const sides: readonly Side[] = ['word', 'other']
    const ends: readonly Side[] = ['edge', 'word', 'other']
    this.#anchored = sides.every(before => ends.every(next => this.#follow([0], before, next)?.length === 0))
  }

  test(text: string, meter: Meter | undefined): boolean {
    this.#meter = meter
    meter?.spend(1 + (text.length >> 9))
    this.#start ??= this.#state([0], 'edge')
    let state = this.#start
    for (let at = 0, paid = 0; at < text.length; at++) {
      if (++paid === charsPerStep) {
        meter?.spend(1)
        paid = 0
      }
      let code = text.charCodeAt(at)
      let next = code < 128 ? state.ascii[code] : undefined
      if (next === undefined) {
        if (code >= 0xd800) code = text.codePointAt(at) ?? code
        next = (code < 128 ? undefined : state.others.get(code)) ?? this.#step(state, code)
        if (code > 0xffff) at++
      }
      if (next === matched) return true
      if (next.places.length === 0) return false
      state = next
    }
    state.ends ??= this.#follow(state.places, state.before, 'edge') === undefined
    return state.ends
  }

  #step(from: State, code: number): State {
    const char = String.fromCodePoint(code)
    const side: Side = isWord(code) ? 'word' : 'other'
    const reached = this.#follow(from.places, from.before, side)
    const next = reached === undefined ? matched : this.#state(this.#advance(reached, char, code), side)
    if (code < 128) from.ascii[code] = next
    else if (++this.#others < maxOthers) from.others.set(code, next)
    else this.#forget()
    return next
  }

  #advance(places: readonly number[], char: string, code: number): number[] {
    const next: number[] = []
    this.#meter?.spend((code < 128 ? 1 : otherPrice) * places.length)
    for (const place of places) {
      const instruction = this.#program[place]
      if (instruction?.op === 'char' && instruction.test(char, code)) next.push(place + 1)
    }
    if (!this.#anchored) next.push(0)
    return next
  }

  /** All that is reached without consuming; undefined when that is the end of the pattern. */
  #follow(places: readonly number[], before: Side, next: Side): number[] | undefined {
    const round = ++this.#round
    const reached: number[] = []
    const stack = [...places]
    for (let place = stack.pop(); place !== undefined; place = stack.pop()) {
      if (this.#entered[place] === round) continue
      this.#entered[place] = round
      this.#meter?.spend(1)
      const instruction = this.#program[place]
      if (instruction === undefined || instruction.op === 'match') return undefined
      if (instruction.op === 'char') reached.push(place)
      else if (instruction.op === 'split') stack.push(instruction.or, instruction.to)
      else if (holds(instruction.assertion, before, next)) stack.push(place + 1)
    }
    return reached
  }

  #state(places: readonly number[], before: Side): State {
    this.#meter?.spend(statePrice + 4 * places.length)
    const sorted = [...new Set(places)].sort((a, b) => a - b)
    const key = `${before} ${sorted.join(' ')}`
    const known = this.#states.get(key)
    if (known !== undefined) return known
    if (this.#states.size >= maxStates) this.#forget()
    const state: State = { places: sorted, before, ascii: [], others: new Map(), ends: undefined }
    this.#states.set(key, state)
    return state
  }

  #forget(): void {
    this.#states = new Map()
    this.#start = undefined
    this.#others = 0
  }
}

const charsPerStep = 4

const matched: State = { places: [0], before: 'edge', ascii: [], others: new Map(), ends: true }

function holds(assertion: Assertion, before: Side, next: Side): boolean {
  // Within a text there is no edge at the beginning, and none but the end behind.
  if (assertion === '^') return before === 'edge'
  if (assertion === '$') return next === 'edge'
  return ((before === 'word') !== (next === 'word')) === (assertion === '\\b')
}

function isWord(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || (code >= 0x30 && code <= 0x39) || code === 0x5f
}
