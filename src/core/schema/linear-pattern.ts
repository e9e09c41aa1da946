/**
 * Regular expressions tested in time linear in the text, for patterns that come from others. All states of the automaton advance together,
 * so there is no going back; single characters are left to the native engine. Look-around and back-references have no such automaton.
 */
import type { StepMeter } from './schema.ts'

/** A pattern that is tested in time linear in the text. */
export interface LinearPattern {
  /** Whether the pattern occurs in `text`. Each state visited is one step on the meter. */
  test(text: string, meter?: StepMeter): boolean
}

/** Counted repetitions are written out; a pattern that grows beyond this is not taken. */
const maxInstructions = 4_000
const maxGroupDepth = 100

type Node =
  | { readonly kind: 'char'; readonly test: Test }
  | { readonly kind: 'assert'; readonly assertion: Assertion }
  | { readonly kind: 'all' | 'any'; readonly parts: readonly Node[] }
  | { readonly kind: 'repeat'; readonly part: Node; readonly min: number; readonly max: number }
/** Undefined for what is no pattern, or none that can be tested in linear time. */
export function linearPattern(pattern: string): LinearPattern | undefined {
  try {
    // Cheap, and settles once what is a pattern at all: the reader below may then take well-formedness for granted.
    new RegExp(pattern, 'u')
    const program: Instruction[] = []
    emit(new Reader(pattern).alternatives(), program)
    program.push({ op: 'match' })
    const automaton = new Automaton(program)
    return { test: (text, meter) => automaton.test(text, meter) }
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof NotLinear) return undefined
    throw error
  }
}

/** One character: a pair of escaped surrogates, another escape, a class, or itself. */
const atom =
  /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\(?:[pPu]\{[^}]*\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[a-zA-Z]|.)|\[(?:\\.|[^\]\\])*\]|./suy

class NotLinear extends Error {
  override readonly name = 'NotLinear'
}

class Reader {
  readonly #pattern: string
  #at = 0
  #depth = 0

  constructor(pattern: string) {
    this.#pattern = pattern
  }

  alternatives(): Node {
    const parts = [this.#sequence()]
    while (this.#take('|')) parts.push(this.#sequence())
    return { kind: 'any', parts }
  }

  #sequence(): Node {
    const parts: Node[] = []
    while (this.#at < this.#pattern.length && !/[|)]/.test(this.#peek())) parts.push(this.#quantified(this.#atom()))
    return { kind: 'all', parts }
  }

  #atom(): Node {
    if (this.#take('(')) return this.#group()
    if (this.#take('^')) return { kind: 'assert', assertion: '^' }
    if (this.#take('$')) return { kind: 'assert', assertion: '$' }
    const [text = ''] = this.#match(atom)
    if (text === '\\b' || text === '\\B') return { kind: 'assert', assertion: text }
    if (/^\\[1-9k]/.test(text)) throw new NotLinear('back-reference')
    return { kind: 'char', test: charTest(text) }
  }

  #group(): Node {
    const [opening = ''] = this.#match(/(?:\?(?::|<(?![=!])[^>]*>))?/y)
    if (opening === '' && this.#peek() === '?') throw new NotLinear('look-around or modifiers')
    if (++this.#depth > maxGroupDepth) throw new NotLinear('groups too deep')
    const inner = this.alternatives()
    this.#take(')')
    this.#depth--
    return inner
  }

  #quantified(part: Node): Node {
    const [text = '', from, comma, to] = this.#match(/(?:[*+?]|\{(\d+)(,?)(\d*)\})?/y)
    if (text === '') return part
    this.#take('?')
    if (text === '*') return { kind: 'repeat', part, min: 0, max: Number.POSITIVE_INFINITY }
    if (text === '+') return { kind: 'repeat', part, min: 1, max: Number.POSITIVE_INFINITY }
    if (text === '?') return { kind: 'repeat', part, min: 0, max: 1 }
    const min = Number(from)
    return { kind: 'repeat', part, min, max: comma === '' ? min : to === '' ? Number.POSITIVE_INFINITY : Number(to) }
  }

  #peek(): string {
    return this.#pattern.charAt(this.#at)
  }

  #take(char: string): boolean {
    if (this.#peek() !== char) return false
    this.#at++
    return true
  }

  #match(sticky: RegExp): RegExpExecArray | [] {
    sticky.lastIndex = this.#at
    const found = sticky.exec(this.#pattern)
    if (found === null) return []
    this.#at += found[0].length
    return found
  }
}

/** A single code point stands for itself; classes and escapes are asked of the native engine, once per ASCII character. */
function charTest(text: string): Test {
  if (text !== '.' && !text.startsWith('\\') && !text.startsWith('[')) return char => char === text
  const native = new RegExp(`^${text}$`, 'u')
  const ascii = new Int8Array(128)
  return (char, code) => {
    if (code >= 128) return native.test(char)
    if (ascii[code] === 0) ascii[code] = native.test(char) ? 1 : -1
    return ascii[code] === 1
  }
}

function emit(node: Node, program: Instruction[]): void {
  if (program.length > maxInstructions) throw new NotLinear('too many repetitions')
  switch (node.kind) {
    case 'char':
      program.push({ op: 'char', test: node.test })
      break
    case 'assert':
      program.push({ op: 'assert', assertion: node.assertion })
      break
    case 'all':
      for (const part of node.parts) emit(part, program)
      break
    case 'any':
      emitAny(node.parts, program)
      break
    case 'repeat':
      emitRepeat(node, program)
  }
}

function emitAny(parts: readonly Node[], program: Instruction[]): void {
  const exits: { to: number; or: number }[] = []
  for (const [index, part] of parts.entries()) {
    if (index === parts.length - 1) emit(part, program)
    else {
      const choice = fork(program)
      emit(part, program)
      exits.push(fork(program))
      choice.or = program.length
    }
  }
  for (const exit of exits) exit.to = exit.or = program.length
}

function emitRepeat({ part, min, max }: Extract<Node, { kind: 'repeat' }>, program: Instruction[]): void {
  for (let count = 0; count < min; count++) {
    const before = program.length
    emit(part, program)
    // What consumes nothing and asserts nothing is the same however often it stands there.
    if (program.length === before) break
  }
  if (max === Number.POSITIVE_INFINITY) {
    const loop = program.length
    const choice = fork(program)
    emit(part, program)
    const back = fork(program)
    back.to = back.or = loop
    choice.or = program.length
    return
  }
  const exits: { or: number }[] = []
  for (let count = min; count < max; count++) {
    exits.push(fork(program))
    emit(part, program)
  }
  for (const exit of exits) exit.or = program.length
}

/** Goes on behind itself, and to where `or` is set later. */
function fork(program: Instruction[]): { to: number; or: number } {
  const split = { op: 'split' as const, to: program.length + 1, or: program.length + 1 }
  program.push(split)
  return split
}

/**
 * Runs the program of a linear pattern. All places where the pattern may be advance together, so there is no going back. Each set of
 * places met is remembered with where each character leads from it: mostly a character costs one look into a table.
 */
type Test = (char: string, code: number) => boolean
type Assertion = '^' | '$' | '\\b' | '\\B'
type Instruction =
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

class Automaton {
  readonly #program: readonly Instruction[]
  /** The round in which a place was last entered: none is entered twice in one. */
  readonly #entered: Int32Array
  /** The pattern can begin only where the text does. */
  readonly #anchored: boolean
  #round = 0
  #states = new Map<string, State>()
  #others = 0
  #start: State | undefined
  #meter: StepMeter | undefined

  constructor(program: readonly Instruction[]) {
    this.#program = program
    this.#entered = new Int32Array(program.length)
    const sides: readonly Side[] = ['word', 'other']
    const ends: readonly Side[] = ['edge', 'word', 'other']
    this.#anchored = sides.every(before => ends.every(next => this.#follow([0], before, next)?.length === 0))
  }

  test(text: string, meter: StepMeter | undefined): boolean {
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
