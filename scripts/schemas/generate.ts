/**
 * JSON Schemas of what the extensions and MCP Live say on the wire, from the descriptions in the `messages.ts` of features: params from
 * the shapes that check them, results and members of `_meta` from the types that the code is written against.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../lib/files.ts'
import { findType, isNode, type Node, nodes, type SourceFile, sourceFile } from './declarations.ts'
import { type MetaPlace, places } from './places.ts'
import { Definitions, type Schema } from './type-schema.ts'

export const dialect = 'https://json-schema.org/draft/2020-12/schema'

/** One feature's document. */
export interface SchemaDocument {
  readonly $schema: string
  readonly $id: string
  readonly title: string
  readonly description?: string
  readonly $defs: Readonly<Record<string, Schema>>
}

export interface MethodEntry {
  readonly method: string
  readonly kind: 'request' | 'notification'
  readonly to: string
  readonly revisions: readonly string[]
  readonly params: string
  readonly result?: string
}

export interface FeatureEntry {
  readonly file: string
  readonly extension?: string
  readonly methods: readonly MethodEntry[]
  readonly meta: Readonly<Partial<Record<MetaPlace, string>>>
}

export interface Generated {
  /** By file name. */
  readonly documents: ReadonlyMap<string, SchemaDocument>
  /** By feature, e.g. `idempotency`, `live-push-events`. */
  readonly index: Readonly<Record<string, FeatureEntry>>
}

type Module = Readonly<Record<string, unknown>>

interface MethodLike {
  readonly name: string
  readonly kind: 'request' | 'notification'
  readonly to: string
  readonly in: readonly string[]
  readonly params: { schema(): Schema }
}

export async function generateSchemas(): Promise<Generated> {
  const paths = Object.keys(places).map(folder => join(root, 'src/features', folder, 'messages.ts'))
  const modules = await loadAll(paths)
  const documents = new Map<string, SchemaDocument>()
  const index: Record<string, FeatureEntry> = {}
  for (const [at, folder] of Object.keys(places).entries()) {
    const { name, document, entry } = featureSchemas(folder, sourceFile(paths[at] ?? ''), modules)
    documents.set(entry.file, document)
    index[name] = entry
  }
  return { documents, index }
}

/** The modules and all that they import, because a type may be made of a value elsewhere. */
async function loadAll(paths: readonly string[]): Promise<ReadonlyMap<string, Module>> {
  const modules = new Map<string, Module>()
  const open = [...paths]
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (modules.has(path)) continue
    modules.set(path, (await import(pathToFileURL(path).href)) as Module)
    open.push(...[...sourceFile(path).imports.values()].map(({ path: from }) => from))
  }
  return modules
}

function featureSchemas(folder: string, file: SourceFile, modules: ReadonlyMap<string, Module>) {
  const { extension, meta = {}, more = [] } = places[folder] ?? {}
  const name = folder.replace(/^reliability\//, '').replace('/', '-')
  const path = `${name}.json`
  const definitions = new Definitions((from, value) => valueIn(modules, from, value))
  const own = modules.get(file.path) ?? {}
  const methods = Object.entries(own).flatMap(([exported, value]) =>
    isMethod(value) ? [methodEntry(value, file.values.get(exported), file, definitions, path)] : [],
  )
  const members: Partial<Record<MetaPlace, string>> = {}
  for (const [place, types] of Object.entries(meta) as [MetaPlace, readonly string[]][]) {
    const refs = types.map(type => typeNamed(type, file, definitions))
    definitions.all.set(`_meta.${place}`, refs.length === 1 ? (refs[0] ?? {}) : { anyOf: refs })
    members[place] = `${path}#/$defs/_meta.${place}`
  }
  for (const type of [...file.types.keys()].filter(each => /^Wire/.test(each)).concat(more)) typeNamed(type, file, definitions)
  const key = extension === undefined ? undefined : [...modules.values()].map(module => module[extension]).find(isText)
  const document: SchemaDocument = {
    $schema: dialect,
    $id: `urn:vivarium:schemas:${name}`,
    title: name,
    ...(file.about !== undefined && { description: file.about }),
    $defs: Object.fromEntries(definitions.all),
  }
  const entry: FeatureEntry = { file: path, ...(key !== undefined && { extension: key }), methods, meta: members }
  return { name, document, entry }
}

function typeNamed(type: string, file: SourceFile, definitions: Definitions): Schema {
  const declared = findType(type, file)
  if (declared === undefined) throw new TypeError(`${file.path} declares no type ${type}, which scripts/schemas/places.ts names`)
  return definitions.named(declared)
}

function methodEntry(
  method: MethodLike,
  init: Node | undefined,
  file: SourceFile,
  definitions: Definitions,
  path: string,
): MethodEntry {
  const { name, kind, to } = method
  const place = `${path}#/$defs/`
  definitions.all.set(`${name}.params`, method.params.schema())
  const type = kind === 'request' && init !== undefined ? resultType(init) : undefined
  if (type !== undefined) definitions.all.set(`${name}.result`, definitions.of(type, file))
  return {
    ...{ method: name, kind, to, revisions: method.in, params: `${place}${escaped(name)}.params` },
    ...(type !== undefined && { result: `${place}${escaped(name)}.result` }),
  }
}

/** The `R` of `request<R>()(…)`. */
function resultType(init: Node): Node | undefined {
  const inner = isNode(init['callee']) ? init['callee'] : undefined
  const [type] = nodes(isNode(inner?.['typeArguments']) ? inner['typeArguments']['params'] : [])
  return type
}

function valueIn(modules: ReadonlyMap<string, Module>, path: string, name: string): unknown {
  return modules.get(path)?.[name]
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

/** As a part of a JSON pointer in a URI. */
function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}

function isMethod(value: unknown): value is MethodLike {
  const { name, kind, params } = (typeof value === 'object' && value !== null ? value : {}) as Partial<MethodLike>
  return typeof name === 'string' && (kind === 'request' || kind === 'notification') && typeof params?.schema === 'function'
}
