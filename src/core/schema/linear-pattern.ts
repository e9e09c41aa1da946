/**
 * Regular expressions tested in time linear in the text, for patterns that come from others. All states of the automaton advance together,
 * so there is no going back; single characters are left to the native engine. Look-around and back-references have no such automaton.
 */
import { type Assertion, Automaton, type Instruction, type Test } from './linear-automaton.ts'
import type { Meter } from './meter.ts'

export interface LinearPattern {
  /** Whether the pattern occurs in `text`. Each state visited is one step on the meter. */
  test(text: string, meter?: Meter): boolean
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
