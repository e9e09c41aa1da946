/** `npm run shots`: makes the screenshots of the table into .cache/shots/. They are shown on the site and kept nowhere else. */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunningBrowser, startBrowser } from '../../scripts/browser/devtools.ts'
import { findBrowser } from '../../scripts/browser/find.ts'
import { listBuilt, listFiles, root } from '../../scripts/lib/files.ts'
import { html } from '../html.ts'

import { SHOTS, type Shot, type ShotEntry } from './table.ts'
import { terminalPage } from './terminal.ts'

const folder = join(root, '.cache', 'shots')
/** Sharp on dense screens, and still small. */
const scale = 1.6

/** What was made, and from what. */
const listFile = join(folder, 'shots.json')

/** Those of the last time while nothing has changed that they show; else they are made anew. */
export async function currentShots(): Promise<readonly Shot[]> {
  const digest = digestOfSources()
  if (existsSync(listFile)) {
    const last = JSON.parse(readFileSync(listFile, 'utf8')) as { digest: string; shots: readonly Shot[] }
    if (last.digest === digest && last.shots.every(({ file }) => existsSync(file))) return last.shots
  }
  const shots = await takeShots()
  if (shots.length === SHOTS.length) writeFileSync(listFile, JSON.stringify({ digest, shots }))
  return shots
}

/** The built command, the examples that it is shown with, and the table itself. */
function digestOfSources(): string {
  const hash = createHash('sha256')
  const sources = [...listBuilt(/\.js$/), ...listFiles(['examples', 'site/shots'], /\.(ts|json|yaml)$/)]
  for (const path of sources) hash.update(path).update(readFileSync(join(root, path)))
  return hash.digest('hex')
}

/** Those that could be made. Without a browser there are none; one that fails is said and left out. */
async function takeShots(): Promise<readonly Shot[]> {
  const browser = findBrowser()
  if (browser === undefined) {
    console.log('shots: no browser can run here, so there are no screenshots')
    return []
  }
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const running = await startBrowser(browser)
  const taken: Shot[] = []
  try {
    for (const entry of SHOTS) {
      try {
        taken.push(await take(entry, running))
      } catch (error) {
        console.log(`shots: ${entry.name} is left out: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
  } finally {
    await running.close()
  }
  return taken
}

async function take(entry: ShotEntry, browser: RunningBrowser): Promise<Shot> {
  const data = mkdtempSync(join(tmpdir(), 'shots-'))
  const served = entry.kind === 'page' ? await entry.start() : undefined
  const tab = await browser.openTab({
    width: entry.kind === 'page' ? entry.width : 1200,
    height: entry.kind === 'page' ? entry.height : 900,
    scale,
  })
  try {
    let clip = { x: 0, y: 0, width: 0, height: 0 }
    if (entry.kind === 'terminal') {
      const page = join(data, 'shot.html')
      writeFileSync(page, await terminalPage(entry, data))
      await tab.open(`file://${page}`)
      const box = await tab.evaluate(
        `(({ width, height }) => ({ width, height }))(document.querySelector('main').getBoundingClientRect())`,
      )
      clip = { x: 0, y: 0, ...(box as { width: number; height: number }) }
    } else if (served !== undefined) {
      await tab.open(served.url)
      await tab.evaluate(
        `new Promise(resolve => { const look = () => ${served.ready} ? resolve() : requestAnimationFrame(look); look() })`,
      )
      clip = { x: 0, y: 0, width: entry.width, height: entry.height }
    }
    const file = join(folder, `${entry.name}.webp`)
    writeFileSync(file, await tab.screenshot('webp', clip))
    const { name, on, under, alt } = entry
    return {
      name,
      on,
      ...(under !== undefined && { under }),
      alt,
      file,
      width: Math.round(clip.width),
      height: Math.round(clip.height),
    }
  } finally {
    await tab.close()
    await served?.close()
    rmSync(data, { recursive: true, force: true })
  }
}

/** All of them on one page, to look at. */
function sheet(shots: readonly Shot[], screens: readonly string[]): string {
  return html`<!doctype html><meta charset="utf-8"><title>Screenshots</title>${shots.map(({ name, alt, width }) => html`<h2>${name}</h2><p>${alt}</p><img src="${name}.webp" alt="" width="${width}">`)}${screens.map(file => html`<h2>${file}</h2><img src="${file}" alt="" width="900">`)}`
    .text
}

/** The screens of the console are for whoever changes them; the site does not show them. */
async function takeScreens(): Promise<readonly string[]> {
  const browser = findBrowser()
  if (browser === undefined) return []
  const running = await startBrowser(browser)
  try {
    // Not above: it loads the whole package, which a site alone does not need.
    const { takeConsoleShots } = await import('../../scripts/console-shots.ts')
    return await takeConsoleShots(running, folder)
  } finally {
    await running.close()
  }
}

if (import.meta.main) {
  // `npm run shots -- console` takes those alone.
  const only = process.argv[2]
  mkdirSync(folder, { recursive: true })
  const shots = only === 'console' ? [] : await takeShots()
  const screens = await takeScreens()
  writeFileSync(join(folder, 'index.html'), sheet(shots, screens))
  for (const { file, width, height } of shots)
    console.log(`${file} (${width} × ${height}, ${Math.round(readFileSync(file).length / 1024)} kB)`)
  console.log(`${screens.length} screens of the console: ${join(folder, 'index.html')}`)
  if (only !== 'console' && shots.length < SHOTS.length) process.exitCode = 1
}
