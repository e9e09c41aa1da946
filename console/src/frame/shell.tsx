/** The frame around every screen: rail, title, palette, keys, and what to say when the process is away. */
import { Outlet, useNavigate, useRouterState } from '@tanstack/react-router'
import { type ReactNode, useEffect, useMemo, useState } from 'react'
import { Announcer } from './announcer.tsx'
import { ConnectionBanner, useDisconnected } from './connection-banner.tsx'
import { useConsole } from './context.ts'
import { KeyList } from './key-list.tsx'
import { type KeyMap, useKeys } from './keys.ts'
import { Palette } from './palette.tsx'
import { Rail } from './rail.tsx'
import { screenEntries } from './screens.ts'

export function Shell(): ReactNode {
  const { self } = useConsole()
  const navigate = useNavigate()
  const disconnected = useDisconnected()
  const [open, setOpen] = useState<'palette' | 'keys'>()
  const path = useRouterState({ select: state => state.location.pathname })
  const title = screenEntries.find(entry => path.startsWith(entry.path))?.title ?? 'Console'
  useEffect(() => {
    document.title = `${title} · ${self.name}`
  }, [title, self.name])
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      // Out of a field, so that letters act again; Tab goes on from there.
      const { target } = event
      if (event.key === 'Escape' && target instanceof HTMLElement && target.matches('main :is(input, textarea)')) target.blur()
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 'k') return
      event.preventDefault()
      setOpen('palette')
    }
    addEventListener('keydown', hear)
    return () => removeEventListener('keydown', hear)
  }, [])
  const keys = useMemo<KeyMap>(
    () => ({
      '?': () => setOpen('keys'),
      '/': () => document.querySelector<HTMLElement>('[data-filter]')?.focus(),
      ...Object.fromEntries(
        screenEntries
          .filter(({ screen }) => self.screens.includes(screen))
          .map(entry => [`g ${entry.letter}`, () => void navigate({ to: entry.path })]),
      ),
    }),
    [self, navigate],
  )
  useKeys(keys)
  return (
    <div className="flex h-dvh flex-col md:flex-row">
      <a href="#content" className="sr-only focus:not-sr-only focus:absolute focus:z-30 focus:bg-raised focus:p-2">
        Skip to the content
      </a>
      <Rail />
      <div className="flex min-h-0 min-w-0 flex-1 flex-col pb-14 md:pb-0">
        <ConnectionBanner />
        <header className="flex items-center gap-3 border-b border-line bg-raised px-4 py-2">
          <h1 className="text-[1.14rem] font-semibold">{title}</h1>
          <button
            type="button"
            onClick={() => setOpen('palette')}
            className="ml-auto flex min-h-8 items-center gap-3 rounded-md border border-line px-3 text-muted hover:bg-hover"
          >
            Go to <kbd className="font-mono text-[0.86rem]">Ctrl K</kbd>
          </button>
          <button
            type="button"
            aria-label="Keys"
            onClick={() => setOpen('keys')}
            className="min-h-8 min-w-8 rounded-md border border-line text-muted hover:bg-hover"
          >
            ?
          </button>
        </header>
        <main id="content" tabIndex={-1} className={`min-h-0 flex-1 overflow-auto ${disconnected ? 'grayscale' : ''}`}>
          <Outlet />
        </main>
      </div>
      <Announcer />
      {open === 'palette' && <Palette close={() => setOpen(undefined)} />}
      {open === 'keys' && <KeyList close={() => setOpen(undefined)} />}
    </div>
  )
}
