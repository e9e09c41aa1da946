/**
 * The API reference of the documentation site, written from the declarations and their doc comments: a page for each public entry, and one
 * for each type with many members. It is made with the site and kept nowhere.
 */
import { join } from 'node:path'
import { PUBLIC } from '../lib/entries.ts'
import { root } from '../lib/files.ts'
import { findStatements, plain, sourceFile } from '../schemas/declarations.ts'
import { ApiPage, codeSpan, linkedType, marked, type Place, targetsOf } from './api-page.ts'
import { explain } from './comments.ts'
import { brokenSignature, declaredText } from './declared.ts'
import { type EntryExport, exported, exportsByEntry, keyOf } from './entry-exports.ts'
import { type Member, membersOf } from './members.ts'
import type { Rename } from './type-text.ts'

const FOLDER = 'reference/api'
/** A type with as many members has a page of its own. */
const large = 20
/** So have those that most readers look for; types that they mention stand on their pages rather than on others. */
const LEADING = [
  ...['ServerOptions', 'ToolOptions', 'Context', 'Server', 'ServeHttpOptions'],
  ...['ConnectOptions', 'CallToolOptions', 'Client', 'HostOptions', 'Host', 'Turn', 'GatewayOptions', 'Gateway'],
]

/** The pages, by their path under `docs/`. */
export async function apiPages(): Promise<readonly { readonly path: string; readonly text: string }[]> {
  const reference = new ApiReference()
  // The first time finds out what stands where, the second time links to it.
  reference.write()
  return reference.write().map(({ path, text }) => ({ path, text }))
}

class ApiReference {
  readonly #entries = exportsByEntry()
  /** By which name and entry a declaration is exported first. */
  readonly #names = new Map<string, EntryExport>()
  readonly #places = new Map<string, Place>()
  /** The declarations behind marked names, by their number. */
  readonly #targets: string[] = []
  /** Declarations that no entry exports, by the page that mentions them first. */
  readonly #inner = new Map<string, Map<string, EntryExport>>()
  #page = new ApiPage('')

  constructor() {
    for (const each of [...this.#entries.values()].flat())
      for (const statement of each.statements) if (!this.#names.has(keyOf(statement))) this.#names.set(keyOf(statement), each)
  }

  write(): readonly ApiPage[] {
    const pages = [...this.#entries].flatMap(([entry, all]) => {
      const own = this.#own(all).filter(each => this.#isLarge(each))
      const rank = ({ name }: EntryExport): number => (LEADING.indexOf(name) + LEADING.length + 1) % (LEADING.length + 1)
      return [...own.sort((a, b) => rank(a) - rank(b)).map(each => this.#typePage(each)), this.#entryPage(entry, all)]
    })
    return [this.#index(), ...pages]
  }

  #index(): ApiPage {
    const page = this.#begin(`${FOLDER}/index.md`)
    page.heading(1, 'API reference')
    page.paragraph('Every name that the package exports, by entry. The descriptions are those that your editor shows.')
    for (const [entry, all] of this.#entries) {
      page.heading(2, `vivarium/${entry}`)
      page.paragraph(`${aboutEntry(entry)} [Full reference](${entry}.md).`)
      this.#list(this.#own(all).filter(each => each.kind !== 'type' || this.#isLarge(each)))
    }
    return page
  }

  #entryPage(entry: string, all: readonly EntryExport[]): ApiPage {
    const page = this.#begin(pathOf(entry))
    page.heading(1, `vivarium/${entry}`)
    page.paragraph(aboutEntry(entry))
    const own = this.#own(all)
    const groups = {
      'Functions and classes': own.filter(({ kind }) => kind !== 'type'),
      Types: own.filter(({ kind }) => kind === 'type'),
    }
    for (const [title, group] of Object.entries(groups)) {
      if (group.length === 0) continue
      page.heading(2, title)
      this.#list(group)
      for (const each of group) if (!this.#isLarge(each)) this.#section(each, 3)
    }
    const elsewhere = all.filter(each => !own.includes(each))
    if (elsewhere.length > 0) {
      page.heading(2, 'Also exported here')
      page.paragraph(`${elsewhere.map(each => this.#linked(each)).join(', ')}.`)
    }
    this.#innerTypes()
    return page
  }

  #typePage(each: EntryExport): ApiPage {
    const page = this.#begin(pathOf(each.entry, each.name))
    this.#section(each, 1)
    this.#innerTypes()
    return page
  }

  #begin(path: string): ApiPage {
    this.#page = new ApiPage(path)
    return this.#page
  }

  #list(group: readonly EntryExport[]): void {
    const rows = group.map(each => [this.#linked(each), firstSentence(each.comment)])
    this.#page.table(['Name', 'What it is'], rows)
  }

  /** Types that the page mentions and no entry exports, and those that these mention. */
  #innerTypes(): void {
    const inner = this.#inner.get(this.#page.path)
    if (inner === undefined) return
    this.#page.heading(2, 'Types used here')
    this.#page.paragraph(
      "They are not exported by name. To name the type of an option, write for example `ToolOptions['confirm']`.",
    )
    // The map grows while it is read.
    for (const each of inner.values()) this.#section(each, 3)
  }

  /** Those that this entry exports first. */
  #own(all: readonly EntryExport[]): readonly EntryExport[] {
    return all.filter(each => each.statements.some(statement => this.#names.get(keyOf(statement)) === each))
  }

  readonly #sizes = new Map<EntryExport, number>()

  #isLarge(each: EntryExport): boolean {
    const size = this.#sizes.get(each) ?? membersOf(each.statements, () => undefined).length
    this.#sizes.set(each, size)
    return size >= large || (each.kind !== 'function' && LEADING.includes(each.name))
  }

  #section(each: EntryExport, level: number): void {
    const anchor = this.#page.heading(level, each.name)
    for (const statement of each.statements) this.#places.set(keyOf(statement), { path: this.#page.path, anchor })
    if (level === 1)
      this.#page.code(`import ${each.kind === 'type' ? 'type ' : ''}{ ${each.name} } from 'vivarium/${each.entry}'`)
    const members = membersOf(each.statements, this.#rename)
    const code = declaredText(each, this.#rename, members.length > 0)
    if (code !== undefined) this.#page.code(code)
    this.#words(each.comment)
    if (code !== undefined && members.length === 0) this.#mentioned(code)
    this.#properties(members.filter(({ isMethod }) => !isMethod))
    for (const method of members.filter(({ isMethod }) => isMethod)) {
      this.#page.heading(level + 1, `${method.name}()`)
      this.#page.code(method.types.map(type => brokenSignature(`${method.name}${type}`)).join('\n'))
      this.#words(method.comment)
      this.#mentioned(method.types.join(' '))
    }
  }

  #words(comment: string | undefined): void {
    const { text, usual, examples, deprecated, isExperimental } = explain(comment)
    this.#page.paragraph(text)
    if (usual !== undefined) this.#page.paragraph(`Default: ${usual}.`)
    if (deprecated !== undefined) this.#page.paragraph(`**Deprecated.** ${deprecated}`)
    if (isExperimental) this.#page.paragraph('**Experimental.** It may change in any version.')
    for (const example of examples) this.#page.code(example)
  }

  #properties(members: readonly Member[]): void {
    const areOptions = members.some(({ isOptional }) => isOptional)
    const rows = members.map(({ name, isOptional, types, comment }) => {
      const { text, usual, examples, deprecated, isExperimental } = explain(comment)
      const isRequired = areOptions && !isOptional && !name.includes('.')
      const words = [
        isRequired ? '**Required.**' : '',
        text,
        usual === undefined || text.startsWith('Default') ? '' : `Default: ${usual}.`,
        deprecated === undefined ? '' : `**Deprecated.** ${deprecated}`,
        isExperimental ? '**Experimental.**' : '',
        ...examples.map(example => `Example: ${codeSpan(example.replaceAll('\n', ' '))}`),
      ]
      // Rows of their own show what is in an object.
      const isShown = members.some(other => other.name.startsWith(`${name}.`))
      const type = isShown ? types.join(' | ').replace(/\{[^{}]*\}/g, '{ … }') : types.join(' | ')
      return [codeSpan(name), this.#linkedText(type), words.filter(Boolean).join(' ')]
    })
    this.#page.table(['Name', 'Type', 'Description'], rows)
  }

  /** The types of a signature, as links under it. */
  #mentioned(text: string): void {
    const links = targetsOf(text).flatMap(target => {
      const link = this.#linkTo(target)
      const name = this.#nameOf(target)
      return link === undefined || name === undefined || name === 'Awaitable' ? [] : [`[${codeSpan(name)}](${link})`]
    })
    if (links.length > 0) this.#page.paragraph(`Types: ${links.join(', ')}.`)
  }

  #linkedText(text: string): string {
    return linkedType(text, target => this.#linkTo(target))
  }

  #linkTo(target: number): string | undefined {
    const place = this.#places.get(this.#targets[target] ?? '')
    return place === undefined ? undefined : this.#page.link(place)
  }

  #nameOf(target: number): string | undefined {
    const key = this.#targets[target] ?? ''
    return this.#names.get(key)?.name ?? key.split('#')[1]
  }

  #linked(each: EntryExport): string {
    const [statement] = each.statements
    const home = statement === undefined ? undefined : this.#places.get(keyOf(statement))
    return home === undefined ? codeSpan(each.name) : `[${codeSpan(each.name)}](${this.#page.link(home)})`
  }

  /** The name by which a reader imports what a type mentions. What nobody exports is shown on the page that mentions it first. */
  readonly #rename: Rename = (name, file) => {
    const statements = findStatements(name, file)
    const [statement] = statements
    if (statement === undefined) return undefined
    const key = keyOf(statement)
    const known = this.#names.get(key)
    if (known === undefined) this.#keepInner(key, exported('', name, statements))
    if (!this.#targets.includes(key)) this.#targets.push(key)
    return marked(known?.name ?? name, this.#targets.indexOf(key))
  }

  #keepInner(key: string, each: EntryExport): void {
    if (!isShown(each) || [...this.#inner.values()].some(inner => inner.has(key))) return
    const here = this.#inner.get(this.#page.path) ?? new Map<string, EntryExport>()
    here.set(key, each)
    this.#inner.set(this.#page.path, here)
  }
}

/** What takes types apart for the compiler says nothing to a reader. */
function isShown({ kind, statements: [statement] }: EntryExport): boolean {
  if (kind === 'function' || kind === 'constant' || statement === undefined) return false
  const { file, node } = statement
  return !/\binfer \w|\[K in keyof/.test(file.text.slice(node.start, node.end))
}

function pathOf(entry: string, name?: string): string {
  const kebab = name?.replace(/(?<=[a-z0-9])(?=[A-Z])/g, '-').toLowerCase()
  return `${FOLDER}/${entry}${kebab === undefined ? '' : `-${kebab}`}.md`
}

/** The comment at the top of the entry's file. */
function aboutEntry(entry: string): string {
  const { about = '' } = sourceFile(join(root, PUBLIC[entry] ?? ''))
  return about.replace(/^`vivarium\/\w+`: (\w)/, (_, first: string) => first.toUpperCase()).replace(/ Only public exports\.$/, '')
}

function firstSentence(comment: string | undefined): string {
  const text = plain(comment ?? '') ?? ''
  return /^.*?\.(?=\s|$)/.exec(text)?.[0] ?? text
}
