/** A dialog of the browser: it keeps the focus inside, closes on Escape, and gives the focus back. */
import { type ReactNode, useEffect, useRef } from 'react'

export interface DialogProps {
  readonly label: string
  readonly close: () => void
  readonly children: ReactNode
}

export function Dialog({ label, close, children }: DialogProps): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const element = dialog.current
    element?.showModal()
    return () => element?.close()
  }, [])
  return (
    <dialog
      ref={dialog}
      aria-label={label}
      onClose={close}
      onClick={event => event.target === dialog.current && close()}
      onKeyDown={event => event.key === 'Escape' && close()}
      className="card m-auto mt-[12vh] w-[min(36rem,92vw)] p-0 text-ink shadow-xl"
    >
      {children}
    </dialog>
  )
}
