/** What an expression says, as far as its text can be known without running it; everything else becomes a `{placeholder}`. */
import { isNode, type Node, nameOf, nodes } from '../schemas/declarations.ts'
import { childrenOf, isFunction, type Program, parametersOf } from './program.ts'

/** A part of a text that is known only when it runs. */
export interface Hole {
  readonly name: string
  /** The function of whose parameter it is made. */
  readonly of?: Node
}

export type Part = string | Hole
export type Text = readonly Part[]

/** An expression with what is known of the parameters of the functions around it. */
export interface Bound {
  readonly node: Node
  readonly frames: Frames
}

/** Arguments by function. */
export type Frames = ReadonlyMap<Node, readonly Bound[]>

const none: Frames = new Map()

/** More alternatives than these are one placeholder. */
const mostAlternatives = 12
const deepest = 12

/** Reads expressions of one program. */
export class Texts {
  readonly program: Program

  constructor(program: Program) {
    this.program = program
  }

  /** The texts that an expression may be. */
  of(node: Node, frames: Frames = none, depth = 0): readonly Text[] {
    if (depth > deepest) return [[this.#hole(node)]]
    const next = (each: unknown): readonly Text[] => (isNode(each) ? this.of(each, frames, depth + 1) : [])
    switch (node.type) {
      case 'UnaryExpression':
        return node['operator'] === '-' ? next(node['argument']).map(text => ['-', ...text]) : [[this.#hole(node)]]
      case 'Literal':
        return node['value'] === null ? [] : [[String(node['value'])]]
      case 'TemplateLiteral':
        return this.#template(node, frames, depth)
      case 'BinaryExpression':
        return node['operator'] === '+' ? joined([next(node['left']), next(node['right'])]) : [[this.#hole(node)]]
      case 'ConditionalExpression':
        return [...next(node['consequent']), ...next(node['alternate'])]
      case 'LogicalExpression':
        return node['operator'] === '&&' ? next(node['right']) : [...next(node['left']), ...next(node['right'])]
      case 'TSAsExpression':
      case 'TSSatisfiesExpression':
      case 'TSNonNullExpression':
      case 'ParenthesizedExpression':
      case 'AwaitExpression':
      case 'ChainExpression':
        return next(node['expression'] ?? node['argument'])
      case 'Identifier':
      case 'MemberExpression':
      case 'CallExpression': {
        if (node.type === 'Identifier' && nameOf(node) === 'undefined') return []
        const values = this.values(node, frames, depth)
        if (values.length === 0) return [[this.#hole(node, frames)]]
        return values.flatMap(each =>
          isOpen(each.node) ? [[this.#hole(each.node, each.frames)]] : this.of(each.node, each.frames, depth + 1),
        )
      }
    }
    return [[this.#hole(node)]]
  }

  /** The values of one member of an object. */
  member(node: Node, name: string, frames: Frames = none, depth = 0): readonly Bound[] {
    if (depth > deepest) return []
    return this.values(node, frames, depth).flatMap(({ node: value, frames: around }) => {
      if (isOpen(value)) return [{ node: value, frames: around }]
      if (value.type !== 'ObjectExpression') return []
      const found: Bound[] = []
      for (const each of nodes(value['properties'])) {
        if (each.type === 'SpreadElement') found.push(...this.member(each['argument'] as Node, name, around, depth + 1))
        else if (nameOf(each['key']) === name && isNode(each['value'])) found.push({ node: each['value'], frames: around })
      }
      return found
    })
  }

  /** The expressions that a name, a member, a call or a choice comes down to; the expression itself where it is a value. */
  values(node: Node, frames: Frames = none, depth = 0): readonly Bound[] {
    if (depth > deepest) return []
    const again = (each: unknown, around = frames): readonly Bound[] => (isNode(each) ? this.values(each, around, depth + 1) : [])
    switch (node.type) {
      case 'ConditionalExpression':
        return [...again(node['consequent']), ...again(node['alternate'])]
      case 'LogicalExpression':
        return node['operator'] === '&&' ? again(node['right']) : [...again(node['left']), ...again(node['right'])]
      case 'TSAsExpression':
      case 'TSSatisfiesExpression':
      case 'TSNonNullExpression':
      case 'ParenthesizedExpression':
      case 'ChainExpression':
        return again(node['expression'])
      case 'AwaitExpression':
        return again(node['argument'])
      case 'Identifier':
        return this.#named(node, frames, depth)
      case 'MemberExpression': {
        const object = node['object'] as Node
        if (node['computed'] === true) return this.#anyMember(object, node['property'] as Node, frames, depth)
        const name = nameOf(node['property'])
        return this.member(object, name, frames, depth + 1).flatMap(each => again(each.node, each.frames))
      }
      case 'CallExpression':
        return this.#returned(node, frames, depth)
    }
    return [{ node, frames }]
  }

  #named(node: Node, frames: Frames, depth: number): readonly Bound[] {
    const meaning = this.program.meaningOf(nameOf(node), node)
    if (meaning === undefined || meaning.as === 'declaration') return []
    if (meaning.as === 'value') {
      if (meaning.member === '?') return []
      if (meaning.member === undefined) return this.values(meaning.node, frames, depth + 1)
      return this.member(meaning.node, meaning.member, frames, depth + 1).flatMap(each =>
        this.values(each.node, each.frames, depth + 1),
      )
    }
    if (meaning.member === '?') return []
    const argument = frames.get(meaning.of)?.[meaning.at]
    const standard = parametersOf(meaning.of)[meaning.at]
    if (argument === undefined) {
      const given = frames.has(meaning.of) && standard?.type === 'AssignmentPattern' ? (standard['right'] as Node) : undefined
      if (given === undefined) return frames.has(meaning.of) ? [] : [{ node, frames }]
      return meaning.member === undefined
        ? this.values(given, frames, depth + 1)
        : this.member(given, meaning.member, frames, depth + 1)
    }
    if (meaning.member === undefined) return this.values(argument.node, argument.frames, depth + 1)
    return this.member(argument.node, meaning.member, argument.frames, depth + 1).flatMap(each =>
      this.values(each.node, each.frames, depth + 1),
    )
  }

  /** What a table holds under a key; all that it holds where the key is not known. */
  #anyMember(object: Node, key: Node, frames: Frames, depth: number): readonly Bound[] {
    const keys = this.of(key, frames, depth + 1).map(shown)
    const known = keys.flatMap(each => this.member(object, each, frames, depth + 1))
    if (known.length > 0) return known
    return this.values(object, frames, depth + 1).flatMap(({ node, frames: around }) => {
      if (node.type !== 'ObjectExpression') return []
      return nodes(node['properties']).flatMap(each => (isNode(each['value']) ? [{ node: each['value'], frames: around }] : []))
    })
  }

  /** What the functions of a call return. */
  #returned(call: Node, frames: Frames, depth: number): readonly Bound[] {
    const callee = call['callee'] as Node
    const own = callee.type === 'Identifier' || (callee['object'] as Node | undefined)?.type === 'ThisExpression'
    return (own ? this.program.calleesOf(call) : []).flatMap(fn => {
      if (frames.has(fn)) return []
      const around = new Map(frames).set(fn, argumentsOf(call, frames))
      return returnsOf(fn).flatMap(each => {
        const values = this.values(each, around, depth + 1)
        return values.length === 0 ? [{ node: each, frames: around }] : values
      })
    })
  }

  #template(node: Node, frames: Frames, depth: number): readonly Text[] {
    const expressions = nodes(node['expressions'])
    const pieces = nodes(node['quasis']).flatMap((quasi, at): (readonly Text[])[] => {
      const text: readonly Text[] = [[String((quasi['value'] as { cooked?: string }).cooked ?? '')]]
      const expression = expressions[at]
      return expression === undefined ? [text] : [text, this.#inserted(expression, frames, depth)]
    })
    return joined(pieces)
  }

  /** What is put into a text: a phrase keeps its words, a value becomes a placeholder with its name. */
  #inserted(node: Node, frames: Frames, depth: number): readonly Text[] {
    const found = this.of(node, frames, depth + 1)
    const phrases = found.some(text => text.some(part => typeof part === 'string' && /\s/.test(part.trim())))
    const all = found.length > 0 && found.length <= 4 && (phrases || found.every(isShort))
    if (all) return node.type === 'ConditionalExpression' || found.length > 0 ? found : [[this.#hole(node, frames)]]
    return [[this.#hole(node, frames)]]
  }

  #hole(node: Node, frames: Frames = none): Hole {
    const name = holeName(node)
    if (node.type !== 'Identifier' && node.type !== 'MemberExpression') return { name }
    let root = node
    while (root.type === 'MemberExpression') root = root['object'] as Node
    if (root.type !== 'Identifier') return { name }
    const meaning = this.program.meaningOf(nameOf(root), root)
    return meaning?.as === 'parameter' && !frames.has(meaning.of) ? { name, of: meaning.of } : { name }
  }
}

export function argumentsOf(call: Node, frames: Frames): readonly Bound[] {
  return nodes(call['arguments']).map(node => ({ node, frames }))
}

/** The expressions that a function returns. */
export function returnsOf(fn: Node): readonly Node[] {
  const body = fn['body']
  if (!isNode(body)) return []
  if (body.type !== 'BlockStatement') return [body]
  const found: Node[] = []
  const walk = (node: Node): void => {
    if (node.type === 'ReturnStatement' && isNode(node['argument'])) found.push(node['argument'])
    for (const child of childrenOf(node)) if (!isFunction(child)) walk(child)
  }
  walk(body)
  return found
}

/** As it is shown. */
export function shown(text: Text): string {
  return text.map(part => (typeof part === 'string' ? part : `{${part.name}}`)).join('')
}

/** A parameter of which nothing is known. */
function isOpen({ type }: Node): boolean {
  return type === 'Identifier'
}

/** A constant of a few letters. */
function isShort(text: Text): boolean {
  return text.every(part => typeof part === 'string')
}

function joined(pieces: readonly (readonly Text[])[]): readonly Text[] {
  let all: readonly Text[] = [[]]
  for (const piece of pieces) {
    const choices = piece.length === 0 ? [[]] : piece
    all = all.flatMap(before => choices.map(after => [...before, ...after])).slice(0, mostAlternatives)
  }
  return all
}

/** The name that stands for a value: of what is read, or of what is passed on. */
function holeName(node: Node): string {
  switch (node.type) {
    case 'Identifier':
      return nameOf(node)
    case 'MemberExpression':
      return node['computed'] === true ? holeName(node['object'] as Node) : nameOf(node['property']).replace(/^#/, '')
    case 'TSAsExpression':
    case 'TSNonNullExpression':
    case 'ChainExpression':
      return holeName(node['expression'] as Node)
    case 'AwaitExpression':
    case 'UnaryExpression':
      return holeName(node['argument'] as Node)
    case 'CallExpression': {
      const [first] = nodes(node['arguments'])
      const callee = node['callee'] as Node
      const own = callee.type === 'MemberExpression' && !/^(JSON|Math|Object|String)$/.test(nameOf(callee['object']))
      if (own) return holeName(callee['object'] as Node)
      return first === undefined ? nameOf(callee) : holeName(first)
    }
    case 'BinaryExpression':
    case 'LogicalExpression':
      return holeName(node['left'] as Node)
  }
  return 'value'
}
