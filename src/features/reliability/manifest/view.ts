/** The manifest as programs read it: the names of the wire in camelCase, schemas untouched. */
import { isRecord } from '../../../jsonrpc/message.ts'
import type { WireManifest } from './shape.ts'

type Camel<S> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S
type Opaque = 'input_schema' | 'output_schema' | 'payload_schema'
type Camelled<T> = T extends readonly (infer Item)[]
  ? readonly Camelled<Item>[]
  : T extends object
    ? { readonly [K in keyof T as Camel<K>]: K extends Opaque ? T[K] : Camelled<T[K]> }
    : T

/** All that is known of a server before a call. */
export interface Manifest extends Camelled<Omit<WireManifest, 'manifest_version'>> {
  /** The digest of the document; undefined where the server has none. */
  readonly revision: string | undefined
  /** Put together from what every server tells: there may be more to know. */
  readonly partial: boolean
  /** The document itself, as it came: to be kept, or given on. */
  readonly document: WireManifest
}

export type ManifestTool = Manifest['tools'][number]

export function viewOf(document: WireManifest, revision: string | undefined, partial: boolean): Manifest {
  const { manifest_version, ...rest } = document
  return { ...camelled(rest), revision, partial, document }
}

const opaque: ReadonlySet<string> = new Set<Opaque>(['input_schema', 'output_schema', 'payload_schema'])

function camelled<T>(value: T): Camelled<T> {
  if (Array.isArray(value)) return value.map(item => camelled<unknown>(item)) as Camelled<T>
  if (!isRecord(value)) return value as Camelled<T>
  const members = Object.entries(value).map(([name, member]) => [camel(name), opaque.has(name) ? member : camelled(member)])
  return Object.fromEntries(members)
}

function camel(name: string): string {
  return name.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}
