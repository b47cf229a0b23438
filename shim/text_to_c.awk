# SPDX-License-Identifier: BSD-3-Clause
# Turns a text file into a C string: awk -v name=NAME -f text_to_c.awk FILE
BEGIN { printf "static const char %s[] =\n", name }
{ gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); printf "\t\"%s\\n\"\n", $0 }
END { print "\t;" }
