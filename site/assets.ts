/** Style sheet, scripts, fonts and icon. Names carry a digest of the content, so that caches may keep them. */
import { createHash } from 'node:crypto'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { build, transform } from 'esbuild'
import { listFiles, root } from '../scripts/lib/files.ts'
import type { Packages } from './packages.ts'
import { icon } from './theme/logo.ts'

/** Latin letters only: the documentation is in English, and other scripts fall back to fonts of the machine. */
const FONTS: Readonly<Record<string, string>> = {
  text: '@fontsource-variable/figtree/files/figtree-latin-wght-normal',
  italic: '@fontsource-variable/figtree/files/figtree-latin-wght-italic',
  title: '@fontsource/fraunces/files/fraunces-latin-600-normal',
}

/** The names of those that pages refer to. */
export interface Assets {
  readonly style: string
  readonly script: string
  /** Runs before anything is drawn. */
  readonly scheme: string
}

export async function writeAssets(folder: string, packages: Packages): Promise<Assets> {
  const put = (name: string, text: string): string => {
    const digest = createHash('sha256').update(text).digest('hex').slice(0, 8)
    const named = name.replace('.', `-${digest}.`)
    writeFileSync(join(folder, named), text)
    return named
  }
  for (const [name, file] of Object.entries(FONTS)) copyFileSync(packages.file(`${file}.woff2`), join(folder, `${name}.woff2`))
  writeFileSync(join(folder, 'icon.svg'), icon)
  const sheets = listFiles(['site/theme'], /\.css$/).map(path => readFileSync(join(root, path), 'utf8'))
  const { code } = await transform(sheets.join('\n'), { loader: 'css', minify: true })
  const [scheme] = await bundle(folder, 'scheme', packages)
  const scripts = await bundle(folder, 'main', packages)
  for (const { path, text } of scripts) writeFileSync(path, text)
  const main = scripts.find(({ path }) => basename(path).startsWith('main-'))
  if (main === undefined || scheme === undefined) throw new Error('site: esbuild gave no script')
  return { style: put('style.css', code), scheme: put('scheme.js', scheme.text), script: basename(main.path) }
}

async function bundle(folder: string, name: string, packages: Packages): Promise<readonly { path: string; text: string }[]> {
  const { outputFiles } = await build({
    entryPoints: [join(root, 'site', 'client', `${name}.ts`)],
    outdir: folder,
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    minify: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    nodePaths: [packages.modules],
    tsconfigRaw: {},
    logLevel: 'error',
  })
  return outputFiles
}
