/**
 * For dist/web: modules that only Node can run are replaced by the `web.ts` of their room, and where `x.web.ts` lies beside `x.ts`,
 * it is taken in its place. Whatever still names Node, an optional package or a module by a computed name stops the build, because
 * bundlers and Workers would stop there too.
 */
import { existsSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join } from 'node:path'
import type { Plugin } from 'rolldown'
import { root } from './files.ts'

const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: Record<string, string> }

/** Modules that do nothing on the web but refuse, by the module that refuses in their place. */
const standIns: Readonly<Record<string, readonly string[]>> = {
  'src/core/web.ts': ['required-node.ts', 'schema/compiler.ts'],
  'src/stores/web.ts': ['directory-blobs.ts', 'postgres/pg.ts', 'postgres/store.ts', 'sqlite/path.ts', 'sqlite/store.ts'],
  'src/auth/client/web.ts': ['file-storage.ts', 'loopback.ts'],
  'src/transports/web.ts': ['http/listen.ts', 'stdio/client.ts', 'stdio/server.ts', 'websocket/server.ts'],
}

const replaced = new Map(
  Object.entries(standIns).flatMap(([face, names]) => names.map(name => [join(root, dirname(face), name), join(root, face)])),
)
for (const path of replaced.keys()) if (!existsSync(path)) throw new Error(`${path} is gone: update standIns in web-faces.ts`)

/** The face of a source file on the web: itself, unless there is another one. */
export function webFaceOf(path: string): string {
  const listed = replaced.get(path)
  if (listed !== undefined) return listed
  const face = path.replace(/(?<!\.web)\.ts$/, '.web.ts')
  return existsSync(face) ? face : path
}

/** What is wrong with an import in the web build; undefined where it may stay. */
export function judgeWebImport(specifier: string): string | undefined {
  if (specifier.startsWith('node:') || builtinModules.includes(specifier))
    return `${specifier} is Node's: give the file that needs it a face beside it, x.web.ts, or list it in scripts/lib/web-faces.ts`
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
  return name in dependencies ? undefined : `${name} is no dependency, so that bundlers would not find it`
}

export const webFaces: Plugin = {
  name: 'web-faces',
  resolveId(source, importer) {
    if (importer === undefined || source.startsWith('@oxc-project/')) return null
    if (source.startsWith('.')) return importer.endsWith('.ts') ? webFaceOf(join(dirname(importer), source)) : null
    const problem = judgeWebImport(source)
    if (problem !== undefined) this.error(`${importer}: ${problem}`)
    return { id: source, external: true }
  },
}
