/** A tab of a real browser that found the link of a console: what every journey looks at. */
import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import type { RunningConsole } from 'vivarium/console'
import type { RunningBrowser, Tab } from '../../scripts/browser/devtools.ts'
import { loadPackages } from '../../site/packages.ts'

export interface Page {
  readonly console: RunningConsole
  readonly tab: Tab
  /** Opens an address of the page. */
  go(path: string): Promise<void>
  /** Waits until the page shows a text. */
  sees(text: string | RegExp): Promise<void>
  /** What axe says against the page. */
  violations(): Promise<unknown>
}

/** Opens the link: the tab is signed in. */
export async function openPage(browser: RunningBrowser, running: RunningConsole): Promise<Page> {
  const tab = await browser.openTab()
  await tab.open(running.link)
  const text = async () => String(await tab.evaluate('document.body.innerText'))
  const axe = readFileSync((await loadPackages()).file('axe-core/axe.min.js'), 'utf8')
  return {
    console: running,
    tab,
    go: path => tab.open(new URL(path, running.url).href),
    async sees(wanted) {
      if (typeof wanted === 'string') await expect.poll(text).toContain(wanted)
      else await expect.poll(text).toMatch(wanted)
    },
    async violations() {
      await tab.evaluate(`${axe};undefined`)
      return tab.evaluate(`axe.run(document).then(({ violations }) =>
        violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(' | ')))`)
    },
  }
}

/** Fails where the page reported an error, broke its policy, or asked another origin. */
export function expectQuiet({ tab, console: { url } }: Page): void {
  expect(tab.errors).toEqual([])
  expect(tab.requests.filter(address => !address.startsWith(url) && !/^(about|blob):/.test(address))).toEqual([])
}

/** Looks at screens, each by an address and a text that it shows, in light and dark, wide and narrow. */
export async function expectAccessible(page: Page, screens: readonly (readonly [path: string, shown: string])[]): Promise<void> {
  for (const view of [{ width: 1280, height: 900 } as const, { width: 390, height: 844 } as const]) {
    for (const scheme of ['light', 'dark'] as const) {
      await page.tab.show({ ...view, scheme })
      for (const [path, shown] of screens) {
        await page.go(path)
        await page.sees(shown)
        expect(await page.violations(), `${path} ${scheme} ${view.width}`).toEqual([])
        expect(await page.tab.evaluate('document.documentElement.scrollWidth'), path).toBeLessThanOrEqual(view.width)
      }
    }
  }
  expectQuiet(page)
}
