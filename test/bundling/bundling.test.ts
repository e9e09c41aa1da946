/** The web build under bundlers: everything is found, nothing of Node or of an optional package is asked for. */
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { build } from 'esbuild'
import { rolldown } from 'rolldown'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WEB } from '../../scripts/lib/entries.ts'
import { root } from '../../scripts/lib/files.ts'
import { judgeWebImport } from '../../scripts/lib/web-faces.ts'

const { exports, dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, Record<string, string>>
  dependencies: Record<string, string>
}

describe.each(WEB)('vivarium/%s', name => {
  it('is web-standard wherever neither Node, Bun nor Deno resolves it, browsers first of all', () => {
    const conditions = Object.entries(exports[`./${name}`] ?? {})
    const resolve = (...met: string[]) => conditions.find(([condition]) => met.includes(condition))?.[1]
    expect(resolve('browser', 'import', 'default')).toBe(`./dist/web/${name}.js`)
    expect(resolve('workerd', 'worker', 'browser', 'import', 'default')).toBe(`./dist/web/${name}.js`)
    expect(resolve('import', 'default')).toBe(`./dist/web/${name}.js`)
    for (const runtime of ['node', 'bun', 'deno']) expect(resolve(runtime, 'node', 'import', 'default')).toBe(`./dist/${name}.js`)
  })

  it.each(['browser', 'neutral'] as const)('is bundled by esbuild for %s, with no externals and no complaint', async platform => {
    const { errors, warnings, metafile } = await build({
      stdin: { contents: `export * from 'vivarium/${name}'`, resolveDir: import.meta.dirname },
      bundle: true,
      write: false,
      format: 'esm',
      platform,
      ...(platform === 'neutral' && { mainFields: ['module', 'main'] }),
      metafile: true,
      tsconfigRaw: {},
      logLevel: 'silent',
    })
    expect([...errors, ...warnings]).toEqual([])
    const used = Object.keys(metafile.inputs)
    expect(used).toContain(`dist/web/${name}.js`)
    expect(used.filter(path => /node_modules\/(pg|ws|ajv)\//.test(path))).toEqual([])
  })

  it('is bundled by rolldown with no externals and no complaint', async () => {
    const complaints: string[] = []
    const bundle = await rolldown({
      input: join(root, `dist/web/${name}.js`),
      platform: 'browser',
      // What one entry loads at once and another later is no fault.
      onLog: (_level, { code, message }) => code !== 'INEFFECTIVE_DYNAMIC_IMPORT' && complaints.push(message),
    })
    const { output } = await bundle.generate({ format: 'esm' })
    await bundle.close()
    const left = output.flatMap(file => (file.type === 'chunk' ? [...file.imports, ...file.dynamicImports] : []))
    expect(left.filter(path => !output.some(({ fileName }) => fileName === path))).toEqual([])
    expect(complaints).toEqual([])
  })
})

it('a walker of modules finds every import written out, and no Node, no optional package, no code made from text', () => {
  const files = globSync('dist/web/**/*.js', { cwd: root })
  expect(files.length).toBeGreaterThan(WEB.length)
  const faults = files.flatMap(path => {
    const code = readFileSync(join(root, path), 'utf8')
    const named = [...code.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"([^"\n]+)"/g)].map(([, specifier]) => specifier ?? '')
    const computed = [...code.matchAll(/\bimport\s*\(\s*(?!["/])[^)]*\)/g)].map(([text]) => `${path}: ${text}`)
    const made = /\bnew Function\(|\beval\(/.test(code) ? [`${path}: makes code`] : []
    const foreign = named.filter(specifier => !specifier.startsWith('.') && judgeWebImport(specifier) !== undefined)
    return [...computed, ...made, ...foreign.map(specifier => `${path}: ${specifier}`)]
  })
  expect(faults).toEqual([])
})

it.each(['server', 'client', 'stores'])('vivarium/%s is bundled for Node where neither pg nor ws is installed', async name => {
  const home = mkdtempSync(join(tmpdir(), 'bundled-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true }))
  const link = (from: string, to: string): void => {
    mkdirSync(dirname(join(home, 'node_modules', to)), { recursive: true })
    symlinkSync(join(root, from), join(home, 'node_modules', to))
  }
  for (const part of ['dist', 'package.json']) link(part, `vivarium/${part}`)
  for (const each of [...Object.keys(dependencies), 'fast-deep-equal', 'fast-uri', 'json-schema-traverse'])
    link(`node_modules/${each}`, each)
  const { errors } = await build({
    stdin: { contents: `export * from 'vivarium/${name}'`, resolveDir: home },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    preserveSymlinks: true,
    logLevel: 'silent',
  })
  expect(errors).toEqual([])
})
