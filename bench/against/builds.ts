/** The two builds of a comparison: this checkout's, and that of another folder. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { root } from '../../scripts/lib/files.ts'

export interface Build {
  readonly name: 'this' | 'other'
  readonly folder: string
  /** Flags of Node by which a process loads `vivarium/…` from it. */
  readonly flags: readonly string[]
}

/** Both, built anew: a comparison with a build from yesterday would mislead. `npm run bench` has built this one already. */
export function prepareBuilds(against: string): readonly [Build, Build] {
  const folder = checkout(against)
  const made = spawnSync(process.execPath, [join('scripts', 'build.ts'), '--js'], { cwd: folder, encoding: 'utf8' })
  if (made.status !== 0) throw new Error(`${folder} cannot be built:\n${made.stdout}${made.stderr}`)
  return [buildIn('this', root), buildIn('other', folder)]
}

function checkout(given: string): string {
  const folder = resolve(given)
  const manifest = join(folder, 'package.json')
  if (!existsSync(manifest)) throw new Error(`--against ${given}: there is no package.json; name a checkout of this project`)
  const { name } = JSON.parse(readFileSync(manifest, 'utf8')) as { name?: unknown }
  if (name !== 'vivarium') throw new Error(`--against ${given}: its package is ${JSON.stringify(name)}, not "vivarium"`)
  if (!existsSync(join(folder, 'node_modules'))) throw new Error(`--against ${given}: run npm ci there first`)
  return realpathSync(folder)
}

function buildIn(name: Build['name'], folder: string): Build {
  const hook = new URL('./use-build.mjs', import.meta.url)
  hook.searchParams.set('build', folder)
  return { name, folder, flags: ['--import', hook.href] }
}
