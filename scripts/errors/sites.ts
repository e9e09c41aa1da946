/** Where errors are made, found by their form, so that none has to be listed: everything thrown with `new`, and objects that refuse. */
import { isNode, type Node, nameOf, nodes } from '../schemas/declarations.ts'
import { childrenOf, isFunction, type Program } from './program.ts'
import { argumentsOf, type Bound, type Frames, shown, type Text, Texts } from './texts.ts'

/** One error that somebody can meet. */
export interface Found {
  /** The class that is thrown; undefined for an object. */
  readonly type: string | undefined
  readonly code: string | undefined
  readonly rule: string | undefined
  readonly status: string | undefined
  readonly message: string
  readonly remedy: string | undefined
  readonly path: string
  readonly line: number
}

/** All errors, and the places whose message cannot be read. */
export interface Extracted {
  readonly found: readonly Found[]
  readonly unreadable: readonly string[]
}

type Field = 'code' | 'rule' | 'status' | 'message' | 'remedy'
type Fields = Readonly<Record<Field, readonly Bound[]>>

const builtIn = /^(?:Error|TypeError|RangeError|SyntaxError|DOMException)$/
/** What a class calls the member that says which error it is: the first that it keeps. */
const codeMembers = ['kind', 'rule', 'code']
/** Verdicts of the conformance kit: judgements about others. */
const verdicts = new Set(['Failed', 'Skipped', 'NotSpoken', 'Guarded', 'Refusal'])
/** Wrappers of wrappers are followed so far. */
const mostCallers = 5

/** Finds every error of a program. */
export function extract(program: Program): Extracted {
  const extraction = new Extraction(program)
  for (const node of program.news) extraction.thrown(node)
  for (const node of program.objects) extraction.told(node)
  return { found: extraction.found, unreadable: extraction.unreadable }
}

/** Numbers that features give to kinds: objects of the form `{ kind: { default: -32000, … } }`. */
export function errorNumbers(program: Program): ReadonlyMap<string, Readonly<Record<string, number>>> {
  const texts = new Texts(program)
  const found = new Map<string, Readonly<Record<string, number>>>()
  for (const object of program.objects)
    for (const each of nodes(object['properties'])) {
      const { value } = each
      if (!isNode(value) || value.type !== 'ObjectExpression') continue
      const numbers = nodes(value['properties']).map(
        ({ key, value: number }) => [nameOf(key), isNode(number) ? texts.of(number).map(shown).join() : ''] as const,
      )
      if (numbers.some(([key]) => key === 'default') && numbers.every(([, number]) => /^-?\d+$/.test(number)))
        found.set(nameOf(each['key']), Object.fromEntries(numbers.map(([key, number]) => [key, Number(number)])))
    }
  return found
}

class Extraction {
  readonly found: Found[] = []
  readonly unreadable: string[] = []
  readonly #program: Program
  readonly #texts: Texts

  constructor(program: Program) {
    this.#program = program
    this.#texts = new Texts(program)
  }

  /** `new SomeError(…)`. */
  thrown(node: Node): void {
    const name = nameOf(node['callee'])
    const base = this.#baseOf(name, node)
    if (base === undefined || verdicts.has(name)) return
    this.#emit(node, name, frames => this.#ofClass(name, node, argumentsOf(node, frames), frames))
  }

  /** `{ message, fix }` and the like. */
  told(node: Node): void {
    const names = new Set(nodes(node['properties']).map(each => nameOf(each['key'])))
    const refuses = ['fix', 'suggestion', 'status', 'code', 'rule'].some(each => names.has(each))
    if (!names.has('message') || !refuses) return
    this.#emit(node, undefined, frames => {
      const read = (...keys: readonly string[]): readonly Bound[] => keys.flatMap(key => this.#texts.member(node, key, frames))
      return {
        message: read('message'),
        code: read('code', 'kind'),
        rule: read('rule'),
        status: read('status'),
        remedy: read('fix', 'suggestion'),
      }
    })
  }

  /** Resolves the fields where the error is made, and again for every caller that decides about them. */
  #emit(node: Node, type: string | undefined, fieldsIn: (frames: Frames) => Fields): void {
    const before = this.found.length
    const visit = (calls: readonly Through[], place: Node): void => {
      const frames = framesOf(calls)
      const fields = fieldsIn(frames)
      const texts = (field: Field): readonly Text[] => fields[field].flatMap(each => this.#texts.of(each.node, each.frames))
      const messages = texts('message')
      const all = [...messages, ...texts('code'), ...texts('remedy'), ...texts('status')]
      const open = all.flatMap(text => text.flatMap(part => (typeof part === 'string' || part.of === undefined ? [] : [part.of])))
      const fn = open.find(each => !frames.has(each) && this.#program.callsOf(each).length > 0)
      if (fn !== undefined && calls.length < mostCallers) {
        for (const call of this.#program.callsOf(fn))
          if (!isInside(this.#program, call, fn)) visit([...calls, { fn, call }], call)
        return
      }
      this.#add(
        type,
        messages,
        { code: texts('code'), rule: texts('rule'), status: texts('status'), remedy: texts('remedy') },
        place,
      )
    }
    visit([], node)
    const own = this.#program.textOf(node)
    if (this.found.length > before || type === undefined || passesOn(own.slice(own.indexOf('('))) || isSignal(own, type)) return
    const { path, line } = this.#placeOf(node)
    this.unreadable.push(`${path}:${line}: ${own.split('\n', 1)[0]}`)
  }

  #add(type: string | undefined, messages: readonly Text[], more: Readonly<Record<string, readonly Text[]>>, place: Node): void {
    const { path, line } = this.#placeOf(place)
    const first = (key: string): string | undefined => {
      const known = (more[key] ?? []).filter(text => text.some(part => typeof part === 'string'))
      const all = [...new Set(known.map(shown).filter(each => each !== ''))]
      return all.length === 0 ? undefined : all.join(' / ')
    }
    for (const message of messages.filter(each => says(each, type !== undefined)))
      this.found.push({
        type,
        code: first('code'),
        rule: first('rule'),
        status: first('status'),
        remedy: first('remedy'),
        message: shown(message),
        path,
        line,
      })
  }

  #placeOf(node: Node): { readonly path: string; readonly line: number } {
    const { path, text } = this.#program.fileOf(node)
    return { path, line: text.slice(0, node.start).split('\n').length }
  }

  /** What a class makes of its arguments: what it hands to the class above it, and what it keeps. */
  #ofClass(name: string, at: Node, args: readonly Bound[], frames: Frames): Fields {
    const empty: Fields = { message: [], code: [], rule: [], status: [], remedy: [] }
    if (builtIn.test(name)) return { ...empty, message: args.slice(0, 1) }
    const cls = this.#program.classNamed(name, at)
    if (cls === undefined) return empty
    const above = nameOf(cls['superClass'])
    const made = constructorOf(cls)
    if (made === undefined) return this.#ofClass(above, cls, args, frames)
    const around = new Map(frames).set(made, args)
    const handed = superCall(made)
    const base = handed === undefined ? empty : this.#ofClass(above, cls, argumentsOf(handed, around), around)
    const kept = (names: readonly string[]): readonly Bound[] =>
      assignments(made, names).map(node => ({ node, frames: around as Frames }))
    const code = codeMembers.map(member => kept([member])).find(each => each.length > 0) ?? []
    return {
      message: base.message,
      code: code.length === 0 ? base.code : code,
      rule: base.rule,
      status: [...base.status, ...kept(['status'])],
      remedy: [...base.remedy, ...kept(['suggestion', 'fix'])],
    }
  }

  /** The built-in class that a class extends; undefined where it is no error. */
  #baseOf(name: string, at: Node): string | undefined {
    if (builtIn.test(name)) return name
    const cls = this.#program.classNamed(name, at)
    const above = nameOf(cls?.['superClass'])
    return cls === undefined || above === '' ? undefined : this.#baseOf(above, cls)
  }
}

/** A function and the call by which it is reached. */
interface Through {
  readonly fn: Node
  readonly call: Node
}

/** Arguments see those of all calls further out, so all share one map. */
function framesOf(calls: readonly Through[]): Frames {
  const frames = new Map<Node, readonly Bound[]>()
  for (const { fn, call } of calls) frames.set(fn, argumentsOf(call, frames))
  return frames
}

/** A message with words; what only repeats another one has none of its own. One word is enough for what is thrown. */
function says(text: Text, thrown: boolean): boolean {
  return text.some(part => typeof part === 'string' && /[a-z]{2,}/i.test(part)) && (thrown || /\s/.test(shown(text)))
}

/** An own class without arguments ends some work and is caught by the same file. */
function isSignal(text: string, type: string): boolean {
  return !builtIn.test(type) && text === `new ${type}()`
}

/** Whether the arguments read the words of another error, which has its own place, or what an object keeps. */
function passesOn(text: string): boolean {
  return /^\(\w+(\.\w+)+[,)]|message|error|fault|problem|refus|denial|why|said|text|told/i.test(text)
}

function isInside(program: Program, node: Node, fn: Node): boolean {
  for (let at: Node | undefined = node; at !== undefined; at = program.parentOf(at)) if (at === fn) return true
  return false
}

function constructorOf(cls: Node): Node | undefined {
  const body = cls['body']
  const found = isNode(body) ? nodes(body['body']).find(each => each['kind'] === 'constructor') : undefined
  return isNode(found?.['value']) ? found['value'] : undefined
}

function superCall(fn: Node): Node | undefined {
  return find(fn, node => node.type === 'CallExpression' && (node['callee'] as Node).type === 'Super')[0]
}

/** What is assigned to members of `this`. */
function assignments(fn: Node, names: readonly string[]): readonly Node[] {
  return find(fn, ({ type, left }) => {
    if (type !== 'AssignmentExpression' || !isNode(left) || left.type !== 'MemberExpression') return false
    return (left['object'] as Node).type === 'ThisExpression' && names.includes(nameOf(left['property']))
  }).map(node => node['right'] as Node)
}

function find(node: Node, fits: (node: Node) => boolean): readonly Node[] {
  const found = fits(node) ? [node] : []
  for (const child of childrenOf(node)) if (!isFunction(child)) found.push(...find(child, fits))
  return found
}
