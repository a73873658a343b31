# SPDX-License-Identifier: GPL-3.0-or-later
# The session of docs/service.md, run as it stands there: each line behind "$ ", and its output, in
# which ... stands for anything.
import re
from common import *

page = open (os.path.join (os.environ["srcdir"], "docs/service.md")).read ()
text = page.split ("## A session\n", 1)[1].split ("\n## ", 1)[0]
steps = []
for line in text.split ("\n"):
  line = line[4:]
  if line.startswith ("$ "): steps.append ((line[2:], []))
  elif line and steps: steps[-1][1].append (line)

work = scratch ()
free = socket.create_server (("127.0.0.1", 0))
port = str (free.getsockname ()[1])
free.close ()
os.makedirs ("bin")
os.symlink (FERRY, "bin/ferry")
shell = subprocess.Popen (["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          env=dict (os.environ, PATH=work + "/bin:" + os.environ["PATH"]))

def run (command):
  command = command.replace ("8077", port)
  if command.endswith ("&"):
    # The daemon's first line is waited for, as somebody at a terminal would.
    shell.stdin.write (command[:-1] + " >serve.out 2>/dev/null &\nwhile ! [ -s serve.out ]; do sleep 0.05; done; cat serve.out; echo =end=\n")
  else:
    shell.stdin.write (command + "; echo; echo =end=\n")
  shell.stdin.flush ()
  out = ""
  while "=end=\n" not in out: out += shell.stdout.readline ()
  return out.replace ("=end=\n", "").strip ().replace (port, "8077")

try:
  for command, expected in steps:
    @claim (command)
    def _ ():
      out = run (command)
      for line in expected:
        pattern = ".*".join (re.escape (p) for p in line.split ("..."))
        assert re.search (pattern, out.replace ("\n", " ")), (line, out[:2000])
      assert expected or not out, out
finally:
  shell.stdin.write ("kill %1; wait %1; exit\n")
  shell.stdin.close ()
  status = shell.wait (PATIENCE)
claim ("its daemon ends in order, and a sanitizer has nothing to say") (lambda: None if status == 0 else 1 / 0)
claim ("the page has a session") (lambda: None if len (steps) > 8 else 1 / 0)
finish ()
